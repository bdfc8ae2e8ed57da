package catalogue_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/render/catalogue"

	"github.com/google/go-cmp/cmp"
)

// xpkg returns a commit that contains only a package image with the given files.
func xpkg(t *testing.T, files fstest.MapFS) fstest.MapFS {
	t.Helper()
	return fstest.MapFS{"providers/a.xpkg": {Data: built(t, files)}}
}

func built(t *testing.T, files fstest.MapFS) []byte {
	t.Helper()
	data, err := fixtures.XPKG(files)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// told returns the content of a catalogue without locations.
func told(t *testing.T, c catalogue.Catalogue) []string {
	t.Helper()
	var all []string
	for _, d := range c.Definitions {
		u, err := d.Document.Decode()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s %s %q %t %s: %v", d.Name, d.Kind, d.Scope, d.State, d.FromCRD, d.Package.Name, u.Object))
	}
	for _, o := range c.Objects {
		all = append(all, fmt.Sprintf("%s of %s: %v", o.ID(), c.Shipped[o.ID()].Name, o.Object))
	}
	for _, p := range c.Packages {
		all = append(all, fmt.Sprintf("%s %s %t", p.Kind, p.Name, p.SafeStart))
	}
	for _, f := range c.Findings {
		all = append(all, f.Rule)
	}
	return all
}

// A package has the same content whether it is unpacked or not.
func TestImage(t *testing.T) {
	for _, archive := range []string{"provider-nop", "provider-helm", "provider-kubernetes"} {
		files := fixtures.Corpus(t, archive)
		want, err := read(files, "", catalogue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, root := range []string{"", "providers", "providers/a.xpkg"} {
			got, err := read(xpkg(t, files), root, catalogue.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(told(t, want), told(t, got)); diff != "" {
				t.Errorf("%s at %q (-unpacked +in an image):\n%s", archive, root, diff)
			}
			if p := got.Packages[0]; p.Directory != "providers/a.xpkg" || p.Origin.String() != "providers/a.xpkg/package.yaml:1" || !p.Image {
				t.Errorf("%s: %+v", archive, p)
			}
		}
	}
}

// A built image next to its sources is the same package, not a second one.
func TestImageInAPackage(t *testing.T) {
	source := tree(map[string]string{"crossplane.yaml": safeProvider, "crds/a.yaml": crd("buckets", "Bucket")})
	files := fixtures.Below("toy", source)
	files["toy/_output/toy.xpkg"] = &fstest.MapFile{Data: built(t, source)}
	c, err := read(files, "", catalogue.Options{})
	if err != nil || len(c.Definitions) != 1 || c.Skipped[catalogue.BuildInput] != 1 {
		t.Errorf("want the one definition and the image skipped, got %v, %v, %v", c.Definitions, c.Skipped, err)
	}

	delete(files, "toy/crossplane.yaml")
	delete(files, "toy/crds/a.yaml")
	c, err = read(files, "", catalogue.Options{Packages: []catalogue.Declared{{Path: "toy", Name: "other"}}})
	if err != nil || len(c.Definitions) != 1 || c.Definitions[0].Package.Name != "provider-toy" {
		t.Errorf("but it counts if it is the only source: got %v, %v", c.Definitions, err)
	}
}

func TestImageRefuses(t *testing.T) {
	misplaced := map[string]string{"crossplane.yaml": safeProvider, "a.yaml": object("apiextensions.crossplane.io/v1", "Composition", "a")}
	cases := map[string]struct {
		reason string
		files  map[string]string
		how    catalogue.Options
		want   string
	}{
		"Unknown": {
			"Crossplane refuses a whole image that contains an unknown kind.",
			map[string]string{"crossplane.yaml": safeProvider, "a.yaml": object("v1", "ConfigMap", "a")}, catalogue.Options{},
			"providers/a.xpkg/package.yaml:6: ConfigMap in v1 is not a kind that Crossplane can decode in a package: it refuses all of package provider-toy",
		},
		"NoManifest": {
			"Crossplane refuses a whole image that contains a document other than a manifest.",
			map[string]string{"crossplane.yaml": safeProvider, "a.yaml": "just: text\n"}, catalogue.Options{},
			"providers/a.xpkg/package.yaml:6: this is not a Kubernetes manifest, so Crossplane refuses all of package provider-toy",
		},
		"OtherTool": {
			"An object of another tool is skipped elsewhere, but Crossplane refuses it in an image.",
			map[string]string{"crossplane.yaml": safeProvider, "a.yaml": object("argoproj.io/v1alpha1", "Application", "a")}, catalogue.Options{},
			"providers/a.xpkg/package.yaml:6: Application in argoproj.io/v1alpha1 is not a kind that Crossplane can decode",
		},
		"Misplaced": {"An older version of Crossplane refuses an object that newer versions ignore.", misplaced, catalogue.Options{CrossplaneVersion: "v2.1.0"}, "providers/a.xpkg/package.yaml:6: Composition is not a kind that Crossplane v2.1.0 accepts in a Provider package"},
		"TwoMetadata": {
			"With two metadata documents, the kind of the package is unclear.", map[string]string{"crossplane.yaml": documents(safeProvider, configuration)}, catalogue.Options{},
			"providers/a.xpkg/package.yaml:7: a package has one metadata document: the first is at providers/a.xpkg/package.yaml:1",
		},
		"NoMetadata": {"A file without metadata is not a package.", map[string]string{"crossplane.yaml": crd("buckets", "Bucket")}, catalogue.Options{}, "providers/a.xpkg: has no metadata, so it is not a package"},
		"Empty":      {"An empty file is not a package.", map[string]string{"crossplane.yaml": ""}, catalogue.Options{}, "providers/a.xpkg: has no metadata, so it is not a package"},
		"Broken":     {"The error contains the line in the YAML of the package.", map[string]string{"crossplane.yaml": safeProvider, "a.yaml": "kind: [\n"}, catalogue.Options{}, "providers/a.xpkg/package.yaml:"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := read(xpkg(t, tree(tc.files)), "", tc.how)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s\nwant %q…, got %v", tc.reason, tc.want, err)
			}
		})
	}
	c, err := read(xpkg(t, tree(misplaced)), "", catalogue.Options{})
	if err != nil || len(c.Objects) > 0 || len(c.Findings) != 1 || c.Findings[0].Fix != "build the package without it" {
		t.Errorf("what it leaves out is a warning: %v, %v", c.Findings, err)
	}
	_, err = read(fstest.MapFS{"a.xpkg": {Data: []byte("kind: A\n")}}, "", catalogue.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "a.xpkg: cannot read: it is not an image in a tarball: ") {
		t.Errorf("a file of the name may be anything: %v", err)
	}
}

// A stream that is not a file of a commit is a package if its metadata says so.
func TestReadStream(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want string
	}{
		"Package": {documents(unsafeProvider, crd("buckets", "Bucket")), `provider-nop: buckets.toy.example.org "Active"`},
		"Late":    {documents(crd("buckets", "Bucket"), unsafeProvider), `provider-nop: buckets.toy.example.org "Active"`},
		"CRDs":    {documents(crd("buckets", "Bucket"), object("v1", "ConfigMap", "a")), `stdin: buckets.toy.example.org ""`},
	} {
		c, err := catalogue.ReadStream("stdin", strings.NewReader(tc.text), catalogue.Options{})
		if err != nil || len(c.Definitions) != 1 {
			t.Errorf("%s: %v, %v", name, c.Definitions, err)
			continue
		}
		d := c.Definitions[0]
		if got := fmt.Sprintf("%s: %s %q", d.Package.Name, d.Name, d.State); got != tc.want || d.Origin().Path != "stdin" {
			t.Errorf("%s: want %s, got %s at %s", name, tc.want, got, d.Origin())
		}
	}
	for text, want := range map[string]string{
		"kind: [":                               "stdin:1: cannot decode: ",
		documents(safeProvider, function):       "stdin:8: a package has one metadata document: the first is at stdin:2",
		documents(crd("a", "A"), crd("a", "A")): "stdin:19: CustomResourceDefinition.apiextensions.k8s.io/a.toy.example.org is declared at stdin:2 already",
	} {
		_, err := catalogue.ReadStream("stdin", strings.NewReader(text), catalogue.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %q…, got %v", want, err)
		}
	}
}
