package upgrade

import (
	"io"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/render/manifest"
)

// Headgate proposes a step among the versions between two, and reads only some of them if there are many.
func TestInBetween(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		tags     []string
		from, to string
		want     []string
	}{
		"Ordered":    {"Versions are compared as numbers: 1.10 is after 1.9.", []string{"v1.10.0", "v1.9.0", "v1.2.0"}, "v1.2.0", "v2.0.0", []string{"v1.9.0", "v1.10.0"}},
		"Without":    {"A tag that is not a version is no step.", []string{"latest", "main", "v1.1.0", "sha256-ab.sig", "v1.1"}, "v1.0.0", "v2.0.0", []string{"v1.1"}},
		"Early":      {"A pre-release is no step on the way to a release.", []string{"v1.1.0-rc.1", "v1.1.0"}, "v1.0.0", "v2.0.0", []string{"v1.1.0"}},
		"ToEarly":    {"A pre-release may be a step on the way to another one.", []string{"v1.1.0-rc.1"}, "v1.0.0", "v1.1.0-rc.2", []string{"v1.1.0-rc.1"}},
		"Back":       {"A downgrade has steps, too.", []string{"v1.0.0", "v1.1.0", "v1.2.0"}, "v1.2.0", "v1.0.0", []string{"v1.1.0"}},
		"NoVersions": {"A branch is not a version, so there are no steps.", []string{"v1.0.0"}, "main", "v2.0.0", nil},
	} {
		if diff := cmp.Diff(tc.want, inBetween(tc.tags, tc.from, tc.to)); diff != "" {
			t.Errorf("%s: %s\n(-want +got):\n%s", name, tc.reason, diff)
		}
	}
	many := []string{"v1.0.1", "v1.1.0", "v1.1.1", "v1.2.0", "v1.3.0", "v1.4.0", "v1.5.0", "v1.6.0", "v1.7.0", "v1.8.0", "v1.9.0", "v1.9.1"}
	if diff := cmp.Diff([]string{"v1.2.0", "v1.3.0", "v1.4.0", "v1.5.0", "v1.6.0", "v1.7.0", "v1.8.0", "v1.9.1"}, steps(many)); diff != "" {
		t.Errorf("the last patch of each minor version, and the last eight of them (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(many[:8], steps(many[:8])); diff != "" {
		t.Errorf("few versions are all judged (-want +got):\n%s", diff)
	}
}

// Only the line with the version changes, however a file is read.
func TestEdited(t *testing.T) {
	const text = "kind: Provider\nspec:\n  package: example.org/sea:v1.0.0 # the version\n---\nkind: Other\nspec: {note: example.org/sea:v1.0.0}\n"
	files := fstest.MapFS{"a/provider.yaml": {Data: []byte(text)}, "b.yaml": {Data: []byte("b")}}
	p := Proposal{image: "example.org/sea:v1.0.0", source: "example.org/sea", at: manifest.Origin{Path: "a/provider.yaml", Line: 3}}
	got, err := p.edited(files, "v10.0.0")
	if err != nil {
		t.Fatal(err)
	}
	const want = "kind: Provider\nspec:\n  package: example.org/sea:v10.0.0 # the version\n---\nkind: Other\nspec: {note: example.org/sea:v1.0.0}\n"
	content, err := fs.ReadFile(got, "a/provider.yaml")
	if diff := cmp.Diff(want, string(content)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	file, err := got.Open("a/provider.yaml")
	if err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	opened, bad := io.ReadAll(file)
	if err != nil || bad != nil || string(opened) != want || info.Size() != int64(len(want)) {
		t.Errorf("%v, %v: %d bytes, and %q", err, bad, info.Size(), opened)
	}
	if info, err := fs.Stat(got, "a/provider.yaml"); err != nil || info.Size() != int64(len(want)) {
		t.Errorf("%v: its size is %d, want %d", err, info.Size(), len(want))
	}
	if other, err := fs.ReadFile(got, "b.yaml"); err != nil || string(other) != "b" {
		t.Errorf("%v: %q", err, other)
	}
	if list, err := fs.ReadDir(got, "a"); err != nil || len(list) != 1 {
		t.Errorf("%v: %v", err, list)
	}
	if original := files["a/provider.yaml"].Data; string(original) != text {
		t.Errorf("the file itself is another one: %s", original)
	}
	for name, at := range map[string]int{"another line": 2, "no line": 0, "past the end": 99} {
		p.at.Line = at
		if _, err := p.edited(files, "v10.0.0"); err == nil {
			t.Errorf("%s was edited", name)
		}
	}
}

func TestIsVersion(t *testing.T) {
	for text, want := range map[string]bool{
		"v1.2.3": true, "1.2.3": true, "v1.2.3-rc.1": true, "v1.2": true,
		"latest": false, "": false, "v1.2.3+build": false, "v1.2.3@sha256:ab": false, "v1/2": false, "sha256:ab": false, "v1.2.3 # note": false, "v1.2.3\nkind: Other": false,
	} {
		if got := IsVersion(text); got != want {
			t.Errorf("IsVersion(%q) is %t", text, got)
		}
	}
}
