package packages_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-cmp/cmp"
)

const (
	seaSource = "registry.example.org/acme/provider-sea"
	airSource = "registry.example.org/acme/provider-air"
)

// These are the YAML streams of two packages. sea depends on air.
const (
	sea = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: provider-sea}
spec:
  dependsOn: [{apiVersion: pkg.crossplane.io/v1, kind: Provider, package: ` + airSource + `, version: ">=v1.0.0"}]
`
	air = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-air}\n"
)

// commitOf returns a commit that installs sea.
func commitOf(t *testing.T) packages.Commit {
	t.Helper()
	docs, err := catalogue.Open(fstest.MapFS{"sea.yaml": {Data: []byte(
		"apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-sea}\nspec: {package: \"" + seaSource + ":v1.0.0\"}\n",
	)}}, "", catalogue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return packages.Of(docs, false)
}

// answer responds to a request with a package, and counts how often the package is opened.
func answer(r packages.Request, version, yaml string, opened *int) packages.Image {
	return packages.Image{
		Request: r, Version: version, Digest: "sha256:" + strings.Repeat(version[1:2], 64),
		Open: func() (io.ReadCloser, error) {
			*opened++
			return io.NopCloser(strings.NewReader(yaml)), nil
		},
	}
}

// told returns everything that is visible of a commit.
func told(t *testing.T, c packages.Commit) []string {
	t.Helper()
	var all []string
	for _, r := range c.Missing() {
		all = append(all, fmt.Sprintf("missing %s %q %q", r.Source, r.Version, r.Constraints))
	}
	made, err := c.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range made.Packages {
		all = append(all, fmt.Sprintf("package %s, installed by %v", p.Directory, p.Installers))
	}
	for _, u := range made.Unread {
		all = append(all, "unread: "+u.Err.Error())
	}
	for _, f := range made.Findings {
		all = append(all, f.Rule)
	}
	return all
}

// With must not change the commit on which it is called.
func TestCommitIsAValue(t *testing.T) {
	none := commitOf(t).With([]packages.Image{}, packages.Live{})
	before := told(t, none)
	if diff := cmp.Diff([]string{
		"missing " + seaSource + ` "v1.0.0" []`,
		"unread: package " + seaSource + ":v1.0.0 cannot be read: it was not looked up",
	}, before); diff != "" {
		t.Fatalf("nothing held (-want +got):\n%s", diff)
	}

	var opened int
	held := []packages.Image{answer(none.Missing()[0], "v1.0.0", sea, &opened)}
	one := none.With(held, packages.Live{})
	first := told(t, one)
	if missing := one.Missing(); len(missing) != 1 || missing[0].Source != airSource {
		t.Fatalf("what it depends on is missing: %v", missing)
	}
	held = append(held, answer(one.Missing()[0], "v2.0.0", air, &opened))
	two := one.With(held, packages.Live{})
	broken := one.With([]packages.Image{answer(none.Missing()[0], "v1.0.0", sea, &opened), answer(one.Missing()[0], "v3.0.0", "kind: [", &opened)}, packages.Live{})

	provider := "Provider.pkg.crossplane.io/provider-sea"
	if diff := cmp.Diff([]string{
		"package " + airSource + ":v2.0.0, installed by [" + provider + "]",
		"package " + seaSource + ":v1.0.0, installed by [" + provider + "]",
	}, told(t, two)); diff != "" {
		t.Errorf("both held (-want +got):\n%s", diff)
	}
	for range 2 {
		if got := told(t, broken); len(got) != 2 || !strings.HasPrefix(got[1], "unread: package "+airSource) || strings.Count(got[1], "cannot decode") != 1 {
			t.Errorf("one broken: %q", got)
		}
		for name, tc := range map[string]struct {
			commit packages.Commit
			want   []string
		}{"none": {none, before}, "one": {one, first}} {
			if diff := cmp.Diff(tc.want, told(t, tc.commit)); diff != "" {
				t.Errorf("%s has changed (-before +after):\n%s", name, diff)
			}
		}
	}
	if opened != 3 {
		t.Errorf("each of the 3 images is read once: %d", opened)
	}
}

// The state of a cluster completes what the commit leaves open, for one call only.
func TestSeenIsOfOneCall(t *testing.T) {
	c := commitOf(t)
	seen := packages.Live{Installed: []crossplane.Installed{{Source: seaSource, Version: "v1.0.0", Revision: "provider-sea-abababababab"}}}
	if r := c.With(nil, seen).Missing(); len(r) != 1 || r[0].Installed.Revision != "provider-sea-abababababab" {
		t.Errorf("it is installed: %+v", r)
	}
	if r := c.With(nil, packages.Live{}).Missing(); len(r) != 1 || r[0].Installed.Revision != "" {
		t.Errorf("no cluster was asked: %+v", r)
	}
}

// Without its lock, a commit would request whatever image a tag names today, and nothing would show that the lock was not read.
func TestOnlyALockIsInItsFile(t *testing.T) {
	good := "apiVersion: headgate.dev/v1alpha1\nkind: PackageLock\nmetadata: {name: packages}\npackages: [{source: " + airSource + ", version: v1.0.0, digest: \"sha256:" + strings.Repeat("0", 64) + "\"}]\n"
	for name, tc := range map[string]struct {
		text    string
		refused bool
	}{
		"Lock":        {good, false},
		"Kind":        {strings.Replace(good, "PackageLock", "PackageLok", 1), true},
		"Group":       {strings.Replace(good, "headgate.dev", "headgate.example.org", 1), true},
		"Key":         {strings.Replace(good, "apiVersion", "apiVersgion", 1), true},
		"OtherBeside": {good + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := catalogue.Open(fstest.MapFS{
				"sea.yaml":        {Data: []byte("apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-sea}\nspec: {package: \"" + seaSource + ":v1.0.0\"}\n")},
				packages.LockFile: {Data: []byte(tc.text)},
			}, "", catalogue.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c := packages.Of(docs, false)
			_, err = c.Catalogue()
			if refused := err != nil && strings.Contains(err.Error(), packages.LockFile); refused != tc.refused || (len(c.Missing()) == 0) != tc.refused {
				t.Errorf("refused %t, asks for %d packages: %v", refused, len(c.Missing()), err)
			}
		})
	}
}
