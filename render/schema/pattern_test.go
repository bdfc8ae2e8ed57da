package schema

import (
	"regexp"
	"testing"
)

// patterns are pairs of which the second one includes the first one. The other direction is not included.
var patterns = [][2]string{
	{"^[A-Z]+$", "^[A-Z]+( [A-Z]+)*$"}, // provider-sql v0.16.0
	{"^[A-Z_ ]+$", "^([A-Z0-9_ ]+|[A-Z_ ]+ [(]`[^`]+`(, `[^`]+`)*[)])$"},
	{"^a", ""},
	{"^a$", "a"},
	{"^ab", "^a"},
	{"a{3}", "a{2}"},
	{"^[a-z]{1,63}$", "^[a-z]{1,253}$"},
	{`^a\b`, "^a"},
	{`^a\b`, "^a([^a-z]|$)"},
	{"^a$", "(?m)^a$"},
	{`^a\z`, `^a\n?$`},
	{"^k$", "(?i)^K$"},
	{"^[a-zſK]$", "(?i)^[a-z]$"},
	{"^[a-z]$", `^\p{L}$`},
	{"^.$", "(?s)^.$"},
	{`^\d+$`, "^[0-9a]+$"},
	{"^a+b$", "^(a|b)*$"},
	{"^(arn:(aws|aws-cn):.*)$", "^arn:aws[a-z-]*:"},
	{"a$b", "x"}, // matches no text
}

func TestPatternsInclude(t *testing.T) {
	for _, p := range patterns {
		if included, known := includes(p[0], p[1]); !included || !known {
			t.Errorf("%q is included in %q: got %t, known %t", p[0], p[1], included, known)
		}
		if included, known := includes(p[1], p[0]); included || !known {
			t.Errorf("%q is not included in %q: got %t, known %t", p[1], p[0], included, known)
		}
	}
	for _, same := range [][2]string{{"^(a|b)$", "^[ab]$"}, {"a+", "a"}, {"", "b*"}, {"^", "$"}, {"^$", `^\z`}, {"(?i)é", "é|É"}} {
		if included, known := includes(same[0], same[1]); !included || !known {
			t.Errorf("%q and %q match the same texts: got %t, known %t", same[0], same[1], included, known)
		}
		if included, known := includes(same[1], same[0]); !included || !known {
			t.Errorf("%q and %q match the same texts: got %t, known %t", same[1], same[0], included, known)
		}
	}
	if included, known := includes("(", "a"); included || !known {
		t.Errorf("an invalid pattern: got %t, known %t", included, known)
	}
}

// FuzzPatterns compares arbitrary patterns with what regexp finds in texts.
func FuzzPatterns(f *testing.F) {
	for _, p := range patterns {
		f.Add(p[0], p[1], "ab")
		f.Add(p[1], p[0], "A B\n")
	}
	f.Fuzz(func(t *testing.T, was, is, text string) {
		from, err := regexp.Compile(was)
		to, failed := regexp.Compile(is)
		if err != nil || failed != nil || len(was)+len(is) > 50 {
			return
		}
		included, known := includes(was, is)
		if !known {
			return
		}
		texts := []string{text, ""}
		for _, a := range "ab A1_\n-é" {
			for _, b := range "ab A1_\n-é" {
				texts = append(texts, string(a), string(a)+string(b), string(a)+string(b)+string(a), text+string(a), string(b)+text)
			}
		}
		for _, text := range texts {
			if text = string([]rune(text)); included && from.MatchString(text) && !to.MatchString(text) {
				t.Fatalf("%q is included in %q, but only the first one is in %q", was, is, text)
			}
		}
		if same, known := includes(was, was); known && !same {
			t.Fatalf("%q is not included in itself", was)
		}
	})
}
