package legible

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		"as it is":          "as it is",
		"two\nlines":        "two lines",
		"red \x1b[31mtext":  "red [31mtext",
		"\xffnot UTF-8":     "not UTF-8",
		"1234567890":        "1234567890",
		"1234567890123":     "123456789…",
		"äääääää":           "ääää…",
		"\u202ebackwards\n": "backwards ",
	} {
		if got := Short(text, 12); got != want || !utf8.ValidString(got) {
			t.Errorf("Short(%q, 12) = %q, want %q", text, got, want)
		}
	}
	if got := Short(strings.Repeat("ä", 1000), 100); len(got) > 100 {
		t.Errorf("%d bytes, want at most 100", len(got))
	}
}

// A server's message is shown by line, without control characters, and shortened.
func TestText(t *testing.T) {
	text := Text("x\x1b[31m\u202e`@admin` <script>" + "\n" + strings.Repeat("ä", maxLine) + strings.Repeat("\nx", maxText))
	if strings.ContainsAny(text, "\x1b\u202e") || len(text) > maxText+2*len("…") || !utf8.ValidString(text) || !strings.HasPrefix(text, "x[31m`@admin` <script>\nä") {
		t.Errorf("%.200q", text)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > maxLine+len("…") {
			t.Errorf("a line has %d bytes", len(line))
		}
	}
}
