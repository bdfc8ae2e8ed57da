package check_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// shop is a Source with one complete and one incomplete group.
type shop struct{}

func (shop) Groups() []string { return []string{"whole.example.org", "parts.example.org"} }

func (shop) Knows(group string) check.Extent {
	return map[string]check.Extent{"whole.example.org": check.All, "parts.example.org": check.Some}[group]
}

func (s shop) Kind(gk schema.GroupKind) (check.Kind, bool) {
	return bucket{}, slices.Contains(s.Kinds(gk.Group), gk)
}

func (s shop) Kinds(group string) []schema.GroupKind {
	if s.Knows(group) == check.None {
		return nil
	}
	return []schema.GroupKind{{Group: group, Kind: "Bucket"}}
}

// bucket is a Kind that refuses spec.rules[1].
type bucket struct{}

func (bucket) Versions() []string { return []string{"v1", "v1beta1"} }
func (bucket) Namespaced() bool   { return true }

func (bucket) Check(o *unstructured.Unstructured) check.Result {
	if rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules"); len(rules) > 1 {
		return check.Result{Errors: []check.Problem{{Field: "spec.rules[1]", Message: "is one too many"}}}
	}
	return check.Result{}
}

// object returns an object of a commit.
func object(t *testing.T, apiVersion, kind string) render.Object {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "logs"}}}
	o, err := render.NewObject(u, manifest.Origin{Path: "logs.yaml", Line: 1})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestKinds(t *testing.T) {
	cases := map[string]struct {
		reason           string
		apiVersion, kind string
		want             []string // rule: message (fix)
		omitted          int
	}{
		"Known":     {"A known kind is checked.", "whole.example.org/v1", "Bucket", nil, 0},
		"Unserved":  {"The API server does not find the resource.", "whole.example.org/v2", "Bucket", []string{"version-not-served: the API server does not serve Bucket of whole.example.org in v2 (use v1 or v1beta1)"}, 0},
		"Misspelt":  {"A group that is known completely has no other kind.", "whole.example.org/v1", "Buckte", []string{"kind-unknown: whole.example.org has no kind Buckte (did you mean Bucket?)"}, 0},
		"Case":      {"Kinds are case-sensitive, also in a group that is known in part.", "parts.example.org/v1", "bucket", []string{"kind-unknown: parts.example.org has no kind bucket (write Bucket: upper and lower case count)"}, 0},
		"Near":      {"The group may have both kinds.", "parts.example.org/v1", "Buckets", []string{"kind-near: nothing in this commit declares kind Buckets of parts.example.org, and Bucket is similar (correct the kind if you mean Bucket)"}, 1},
		"NearGroup": {"The other group may exist.", "hole.example.org/v1", "Bucket", []string{"kind-near: nothing in this commit declares kind Bucket of hole.example.org, and whole.example.org has a kind of that name (correct the group if you mean whole.example.org)"}, 1},
		"Else":      {"Any other kind may exist.", "gateway.networking.k8s.io/v1", "Gateway", nil, 1},
		"Other":     {"A kind that is like no other may exist in a group that is known in part.", "parts.example.org/v1", "Gateway", nil, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := check.Check([]render.Object{object(t, tc.apiVersion, tc.kind)}, shop{})
			var got []string
			for _, f := range r.Findings {
				got = append(got, f.Rule+": "+f.Message+" ("+f.Fix+")")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nCheck(...) (-want +got):\n%s", tc.reason, diff)
			}
			omitted := 0
			for _, o := range r.Omitted {
				omitted += o.Objects
			}
			if omitted != tc.omitted {
				t.Errorf("%s\n%d objects are counted as not checked, want %d", tc.reason, omitted, tc.omitted)
			}
		})
	}
}

// A problem is at the line of its field.
func TestPlace(t *testing.T) {
	const file = "apiVersion: whole.example.org/v1\nkind: Bucket\nmetadata: {name: logs}\nspec:\n  rules:\n  - a\n  - b\n"
	want, err := render.Render(render.Input{Files: files{"logs.yaml": file}.fs()}, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := check.Check(want.Objects, shop{})
	if len(r.Findings) != 1 || r.Findings[0].Origin.Line != 7 || !strings.Contains(r.Findings[0].Message, "spec.rules[1]: is one too many") {
		t.Errorf("%+v", r.Findings)
	}
}

// files are the files of a commit.
type files map[string]string

func (f files) fs() fs.FS {
	all := fstest.MapFS{}
	for name, text := range f {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}
