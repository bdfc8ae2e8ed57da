package git

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// A range selects the same tag as in Flux, in a local and in a remote repository.
func TestRangeOfTags(t *testing.T) {
	f := newFixture(t)
	tags := map[string]plumbing.Hash{}
	for _, name := range []string{"v0.9.0", "1.0.0", "v1.2.0", "v1.2.3", "1.10.0", "v2.0.0-rc.1", "2.0.0-rc.2", "v3", "3.1", "v4.0.x", "release-5.0.0", "vv6.0.0", "7.0.0/a", "v1.2.3+a", "v0.1.0+a", "v0.1.0+b"} {
		commit := f.push("main", map[string]string{"a": name})
		tags[name] = commit
		f.tag(name, commit, plumbing.CommitObject)
	}
	f.ref("refs/tags/v1.1.0", tags["v0.9.0"]) // lightweight
	tags["v1.1.0"] = tags["v0.9.0"]
	f.ref("refs/heads/9.0.0", tags["v0.9.0"])
	s := serve(f)
	for name, tc := range map[string]struct{ reason, within, want, err string }{
		"Newest":      {reason: "Versions are numbers, not texts.", within: "*", want: "1.10.0"},
		"Lower":       {reason: "A branch is no version, and neither is 3.1 or vv6.0.0.", within: ">=1.0.0", want: "1.10.0"},
		"Between":     {reason: "A range has two ends.", within: ">=1.0.0 <1.2.0", want: "v1.1.0"},
		"Tilde":       {reason: "A tilde is part of the range, and goes back to no parent.", within: "~1.2", want: "v1.2.3+a"},
		"Caret":       {reason: "A caret is part of the range.", within: "^1.2.0", want: "1.10.0"},
		"Either":      {reason: "One of two ranges suffices.", within: "~0.9 || =1.0.0", want: "1.0.0"},
		"PreRelease":  {reason: "A pre-release counts if the range names one.", within: ">=2.0.0-0", want: "2.0.0-rc.2"},
		"NoRelease":   {reason: "No release is that new.", within: ">=2.0.0", err: "no tag is a version in the range >=2.0.0; branches: "},
		"Build":       {reason: "Builds of a version are equal, so that the name decides.", within: "=0.1.0", want: "v0.1.0+b"},
		"Malformed":   {reason: "A mistake is no range.", within: "main", err: "it is no range of versions"},
		"Empty":       {reason: "Nothing is no range.", within: ",", err: "it is no range of versions"},
		"Instruction": {reason: "A range is quoted in short.", within: strings.Repeat("x", 5000), err: "it is no range of versions"},
	} {
		for _, url := range []string{f.dir, s.url()} {
			t.Run(name, func(t *testing.T) {
				r := &Repository{URL: url, Cache: t.TempDir()}
				in, err := r.Fetch(t.Context(), "semver:"+tc.within)
				if tc.err != "" {
					if err == nil || !strings.Contains(err.Error(), tc.err) || len(err.Error()) > 400 {
						t.Errorf("%s\nwant %q, got %v", tc.reason, tc.err, err)
					}
					return
				}
				if err != nil || in.Revision != tags[tc.want].String() {
					t.Errorf("%s\nwant %s (%s), got %s, %v", tc.reason, tc.want, tags[tc.want], in.Revision, err)
				}
				if in.Source.Ref != "semver:"+tc.within || in.Source.Branch != "" {
					t.Errorf("%s\nthe source follows %q, %q", tc.reason, in.Source.Ref, in.Source.Branch)
				}
			})
		}
	}
}

// A range is followed like a branch: the source stays the same, whatever its newest tag is.
func TestRangeMoves(t *testing.T) {
	h := newHistory(t)
	h.tag("v1.0.0", h.first, plumbing.CommitObject)
	r := &Repository{URL: serve(h.fixture).url(), Cache: t.TempDir()}
	follows := func(what string, want plumbing.Hash, last plumbing.Hash, descends bool) {
		t.Helper()
		tip, err := r.Tip(t.Context(), "semver:1.x")
		in, failed := r.Fetch(t.Context(), "semver:1.x")
		if err != nil || failed != nil || in.Revision != want.String() || tip != in.Revision {
			t.Fatalf("%s: want %s, got %s and %s, %v, %v", what, want, in.Revision, tip, failed, err)
		}
		if is, err := in.Source.Descends(last.String()); is != descends || err != nil || in.Source.Ref != "semver:1.x" {
			t.Errorf("%s: descends from %s: %t, %v; the source follows %q", what, last, is, err, in.Source.Ref)
		}
	}
	follows("the first tag", h.first, h.first, true)
	h.tag("v1.1.0", h.main, plumbing.CommitObject)
	follows("a newer tag", h.main, h.first, true)
	h.tag("v1.1.0", h.dev, plumbing.CommitObject)
	follows("the tag moved", h.dev, h.main, false)
	h.must(h.store.RemoveReference("refs/tags/v1.1.0"))
	follows("the tag is gone", h.first, h.dev, false)
	if branch, err := r.Branch(t.Context(), "semver:1.x"); branch != "" || err != nil {
		t.Errorf("the branch is %q, %v", branch, err)
	}
}
