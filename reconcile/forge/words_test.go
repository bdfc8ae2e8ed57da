package forge

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDescription(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		most   int
		want   string
	}{
		"Fits":        {"what fits stays as it is", "43 active (+2), 2000 inactive", 140, "43 active (+2), 2000 inactive"},
		"Exactly":     {"the limit itself is allowed", strings.Repeat("ä", 140), 140, strings.Repeat("ä", 140)},
		"OneMore":     {"the ellipsis counts too", strings.Repeat("ä", 141), 140, strings.Repeat("ä", 139) + "…"},
		"FourBytes":   {"a forge counts characters, and no half of one is sent", strings.Repeat("🚪", 200), 140, strings.Repeat("🚪", 139) + "…"},
		"BeforeSpace": {"no blank before the ellipsis", "ab cd", 4, "ab…"},
		"Escapes":     {"a commit may name things so that a terminal obeys", "\x1b[31mred\a", 140, "[31mred"},
		"Direction":   {"text that runs backwards reads as something else", "abc\u202edef", 140, "abcdef"},
		"Lines":       {"a status is one line", " a\n\tb \r\n c ", 140, "a b c"},
		"NotText":     {"JSON has no other bytes", "a\xffb", 140, "ab"},
		"URL":         {"a fetch error may name the URL with what is in it", "cannot fetch https://me:s3cret@git.example.org/a/b: 401", 140, "cannot fetch https://git.example.org/a/b: 401"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := cut(plain(tc.text), tc.most); got != tc.want {
				t.Errorf("%s\ncut(plain(%q), %d) = %q, want %q", tc.reason, tc.text, tc.most, got, tc.want)
			}
		})
	}
}

func FuzzDescription(f *testing.F) {
	f.Add("2 drifted: buckets.s3.aws.m.upbound.io and 1 more", 20)
	f.Add("\x1b]0;title\a\u2066x\xff", 3)
	f.Fuzz(func(t *testing.T, output string, most int) {
		most = max(1, min(most, 300))
		got := cut(plain(output), most)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > most {
			t.Errorf("cut(plain(%q), %d) = %q", output, most, got)
		}
		if again := cut(plain(got), most); again != got {
			t.Errorf("%q becomes %q the second time: it would be posted again after every restart", got, again)
		}
	})
}
