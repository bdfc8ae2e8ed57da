package baseline_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestDropEqualSchemas checks that dropping equal schemas hides no difference between releases of real providers, neither from
// users nor from guards.
func TestDropEqualSchemas(t *testing.T) {
	both := 0
	for older, newer := range map[string]string{
		"provider-kubernetes-v1.0.0": "provider-kubernetes",
		"provider-helm-v0.21.0":      "provider-helm",
		"provider-helm":              "provider-helm-v0.21.0",
	} {
		was, is := released(t, older), released(t, newer)
		for name, live := range was {
			after := is[name]
			if after == nil {
				continue
			}
			both++
			compared, changes := schema.Compare(live, after), plan.Step{Action: plan.Update, ID: manifest.IDOf(live), Write: plan.Write{Live: live, After: after}}.Changes()
			live, after = withoutEqual(t, live, after)
			if diff := cmp.Diff(compared, schema.Compare(live, after), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: what it breaks (-whole +without what is equal):\n%s", name, diff)
			}
			if diff := cmp.Diff(changes, plan.Step{Action: plan.Update, ID: manifest.IDOf(live), Write: plan.Write{Live: live, After: after}}.Changes()); diff != "" {
				t.Errorf("%s: changes (-whole +without what is equal):\n%s", name, diff)
			}
		}
	}
	if both < 10 {
		t.Errorf("only %d CRDs were compared", both)
	}
}

func withoutEqual(t *testing.T, live, after *unstructured.Unstructured) (leanLive, leanAfter *unstructured.Unstructured) {
	t.Helper()
	var raw [2][]byte
	for i, u := range []*unstructured.Unstructured{live, after} {
		var err error
		if raw[i], err = json.Marshal(u.Object); err != nil {
			t.Fatal(err)
		}
	}
	raw[0], raw[1] = diff.DropEqualSchemas(raw[0], raw[1])
	leanLive, leanAfter = new(unstructured.Unstructured), new(unstructured.Unstructured)
	for i, u := range []*unstructured.Unstructured{leanLive, leanAfter} {
		if err := utiljson.Unmarshal(raw[i], &u.Object); err != nil {
			t.Fatal(err)
		}
	}
	return leanLive, leanAfter
}

func released(t *testing.T, archive string) map[string]*unstructured.Unstructured {
	t.Helper()
	files := fixtures.Corpus(t, archive)
	paths, err := fs.Glob(files, "crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, path := range paths {
		documents, err := manifest.Read(files, path, manifest.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range documents {
			u, err := d.Decode()
			if err != nil {
				t.Fatal(err)
			}
			all[u.GetName()] = u
		}
	}
	return all
}
