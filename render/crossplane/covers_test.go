package crossplane

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A pattern may only be let through if no name exists, today or later, that it matches beyond what is allowed.
func TestCovers(t *testing.T) {
	const s3 = "*.s3.aws.m.upbound.io"
	cases := map[string]struct {
		reason  string
		by      []string
		pattern string
		want    bool
	}{
		"InFull":       {reason: "One name of those.", by: []string{s3}, pattern: "buckets.s3.aws.m.upbound.io", want: true},
		"Same":         {reason: "The pattern itself.", by: []string{s3}, pattern: s3, want: true},
		"Narrower":     {reason: "Fewer names.", by: []string{s3}, pattern: "bucket*.s3.aws.m.upbound.io", want: true},
		"Everything":   {reason: "All of the cluster.", by: []string{s3}, pattern: "*"},
		"OtherService": {reason: "Another service.", by: []string{s3}, pattern: "*.ec2.aws.m.upbound.io"},
		"SuffixOnly":   {reason: "The star of the group reaches other services.", by: []string{s3}, pattern: "*.aws.m.upbound.io"},
		"OpenEnd":      {reason: "Another team may own the rest of the name.", by: []string{s3}, pattern: "buckets.s3.*"},
		"NotTheDot":    {reason: "Without the dot it is another group.", by: []string{s3}, pattern: "*s3.aws.m.upbound.io"},
		"Question":     {reason: "A ? also matches another character than the dot.", by: []string{s3}, pattern: "buckets?s3.aws.m.upbound.io"},
		"ClassOfDot":   {reason: "A class of one character is that character.", by: []string{s3}, pattern: "buckets[.]s3.aws.m.upbound.io", want: true},
		"NotDot":       {reason: "All characters but one.", by: []string{s3}, pattern: "buckets[^x]s3.aws.m.upbound.io"},
		"Escaped":      {reason: "An escaped character is itself.", by: []string{s3}, pattern: `buckets\.s3.aws.m.upbound.io`, want: true},
		"EscapedStar":  {reason: "No name has a star, so nothing is matched.", by: []string{s3}, pattern: `\*`, want: true},
		"Union":        {reason: "Two entries cover together what neither does.", by: []string{"[a-m]*.x.io", "[^a-m]*.x.io", ".x.io"}, pattern: "*.x.io", want: true},
		"UnionLacks":   {reason: "One first character is in neither.", by: []string{"[a-m]*.x.io", "[o-z0-9.-]*.x.io", ".x.io"}, pattern: "*.x.io"},
		"Nothing":      {reason: "An empty list allows nothing.", pattern: "a.example.org"},
		"Malformed":    {reason: "Crossplane ignores it.", pattern: "[", want: true},
		"MalformedBy":  {reason: "An entry that matches nothing allows nothing.", by: []string{"*["}, pattern: "a.example.org"},
		"UpperCase":    {reason: "No definition has such a name.", pattern: "Buckets.*", want: true},
		"TwoStars":     {reason: "It is one star.", by: []string{s3}, pattern: "**.s3.aws.m.upbound.io", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Covers(tc.by, tc.pattern); got != tc.want {
				t.Errorf("%s\nCovers(%q, %q) = %t", tc.reason, tc.by, tc.pattern, got)
			}
		})
	}
}

// An author who makes the question hard gets a refusal, in bounded time.
func TestCoversIsBounded(t *testing.T) {
	hard := "*a" + strings.Repeat("?", 40)
	if Covers([]string{"*b" + strings.Repeat("?", 40), "*c" + strings.Repeat("?", 40)}, hard) {
		t.Error("a pattern that cannot be decided is let through")
	}
	if !Covers([]string{"*.example.org"}, strings.Repeat("*a", 100)+".example.org") {
		t.Error("a long pattern is refused that the entry surely covers")
	}
}

// FuzzCovers compares the answer with names: none may be matched by a pattern that is covered and by no entry.
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
