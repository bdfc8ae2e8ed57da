package crossplane

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A pattern may pass only if it can never match a name that is not allowed, now or later.
func TestCovers(t *testing.T) {
	const s3 = "*.s3.aws.m.upbound.io"
	cases := map[string]struct {
		reason  string
		by      []string
		pattern string
		want    bool
	}{
		"InFull":       {reason: "The pattern is one of the allowed names.", by: []string{s3}, pattern: "buckets.s3.aws.m.upbound.io", want: true},
		"Same":         {reason: "The pattern equals the allowed one.", by: []string{s3}, pattern: s3, want: true},
		"Narrower":     {reason: "The pattern matches fewer names.", by: []string{s3}, pattern: "bucket*.s3.aws.m.upbound.io", want: true},
		"Everything":   {reason: "The pattern matches all names in the cluster.", by: []string{s3}, pattern: "*"},
		"OtherService": {reason: "The pattern matches another service.", by: []string{s3}, pattern: "*.ec2.aws.m.upbound.io"},
		"SuffixOnly":   {reason: "The star in the group also matches other services.", by: []string{s3}, pattern: "*.aws.m.upbound.io"},
		"OpenEnd":      {reason: "Another team may own names with another suffix.", by: []string{s3}, pattern: "buckets.s3.*"},
		"NotTheDot":    {reason: "Without the dot, the pattern also matches other groups.", by: []string{s3}, pattern: "*s3.aws.m.upbound.io"},
		"Question":     {reason: "A ? also matches characters other than the dot.", by: []string{s3}, pattern: "buckets?s3.aws.m.upbound.io"},
		"ClassOfDot":   {reason: "A class with one character matches only that character.", by: []string{s3}, pattern: "buckets[.]s3.aws.m.upbound.io", want: true},
		"NotDot":       {reason: "A negated class matches all other characters.", by: []string{s3}, pattern: "buckets[^x]s3.aws.m.upbound.io"},
		"Escaped":      {reason: "An escaped character matches only itself.", by: []string{s3}, pattern: `buckets\.s3.aws.m.upbound.io`, want: true},
		"EscapedStar":  {reason: "No name contains a star, so the pattern matches nothing.", by: []string{s3}, pattern: `\*`, want: true},
		"Union":        {reason: "Two entries together allow names that neither allows alone.", by: []string{"[a-m]*.x.io", "[^a-m]*.x.io", ".x.io"}, pattern: "*.x.io", want: true},
		"UnionLacks":   {reason: "Neither entry allows one of the first characters.", by: []string{"[a-m]*.x.io", "[o-z0-9.-]*.x.io", ".x.io"}, pattern: "*.x.io"},
		"Nothing":      {reason: "An empty list allows nothing.", pattern: "a.example.org"},
		"Malformed":    {reason: "Crossplane ignores a malformed pattern.", pattern: "[", want: true},
		"MalformedBy":  {reason: "An entry that matches nothing allows nothing.", by: []string{"*["}, pattern: "a.example.org"},
		"UpperCase":    {reason: "No definition has a name with an upper-case letter.", pattern: "Buckets.*", want: true},
		"TwoStars":     {reason: "Two stars match the same names as one.", by: []string{s3}, pattern: "**.s3.aws.m.upbound.io", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Covers(tc.by, tc.pattern); got != tc.want {
				t.Errorf("%s\nCovers(%q, %q) = %t", tc.reason, tc.by, tc.pattern, got)
			}
		})
	}
}

// If an author writes a pattern that is hard to decide, the answer is a refusal after a limited time.
func TestCoversIsBounded(t *testing.T) {
	hard := "*a" + strings.Repeat("?", 40)
	if Covers([]string{"*b" + strings.Repeat("?", 40), "*c" + strings.Repeat("?", 40)}, hard) {
		t.Error("a pattern that cannot be decided is let through")
	}
	if !Covers([]string{"*.example.org"}, strings.Repeat("*a", 100)+".example.org") {
		t.Error("a long pattern is refused that the entry surely covers")
	}
}

// FuzzCovers compares the answer with names: if a pattern is covered, every name that it matches must match an entry.
func FuzzCovers(f *testing.F) {
	for _, seed := range []string{"*", "a?[b-d]*", `\a[^x]`, "[a-]", "*.b", "[a-c]*", "[]a]", `[\]]`, "é*"} {
		f.Add(seed, "*a", "b*", uint64(1))
	}
	f.Fuzz(func(t *testing.T, pattern, a, b string, seed uint64) {
		if len(pattern)+len(a)+len(b) > 60 {
			return
		}
		covered := Covers([]string{a, b}, pattern)
		r := rand.New(rand.NewPCG(seed, 0))
		for range 300 {
			name := nameLike(r, pattern)
			if covered && Matches(pattern, name) && !Matches(a, name) && !Matches(b, name) {
				t.Fatalf("%q matches %s, which %q and %q do not, and it counts as covered", pattern, name, a, b)
			}
		}
		if !covered || !Covers([]string{pattern}, pattern) {
			return
		}
		if !Covers([]string{b, a}, pattern) {
			t.Fatalf("the order of %q and %q decides about %q", a, b, pattern)
		}
	})
}

// nameLike returns a name that a pattern may match.
func nameLike(r *rand.Rand, pattern string) string {
	var b strings.Builder
	for _, c := range pattern {
		switch {
		case strings.ContainsRune(`*?[]\^`, c):
			for range r.IntN(3) {
				b.WriteByte(nameCharacters[r.IntN(len(nameCharacters))])
			}
		case strings.ContainsRune(nameCharacters, c):
			b.WriteRune(c)
		}
	}
	return b.String()
}
