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
		"Fits":        {"A text that fits stays unchanged.", "43 active (+2), 2000 inactive", 140, "43 active (+2), 2000 inactive"},
		"Exactly":     {"A text with exactly the limit is allowed.", strings.Repeat("ä", 140), 140, strings.Repeat("ä", 140)},
		"OneMore":     {"The ellipsis counts, too.", strings.Repeat("ä", 141), 140, strings.Repeat("ä", 139) + "…"},
		"FourBytes":   {"A forge counts characters, and none may be split.", strings.Repeat("🚪", 200), 140, strings.Repeat("🚪", 139) + "…"},
		"BeforeSpace": {"No space comes before the ellipsis.", "ab cd", 4, "ab…"},
		"Escapes":     {"A commit may contain control sequences for a terminal.", "\x1b[31mred\a", 140, "[31mred"},
		"Direction":   {"Text with reversed direction reads differently.", "abc\u202edef", 140, "abcdef"},
		"Lines":       {"A status is a single line.", " a\n\tb \r\n c ", 140, "a b c"},
		"NotText":     {"JSON cannot contain other bytes.", "a\xffb", 140, "ab"},
		"URL":         {"A fetch error may contain a URL with credentials.", "cannot fetch https://me:s3cret@git.example.org/a/b: 401", 140, "cannot fetch https://git.example.org/a/b: 401"},
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
