package schema_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A way is a place of a CRD in a commit.
type way struct {
	path, policy string
	owner        render.Owner
	served       bool
}

var ways = []way{
	{"object.yaml", "*", render.OwnerHeadgate, true},
	{"package/crds/one.yaml", "*", render.OwnerHeadgate, true},
	{"package/crds/one.yaml", "nothing.example.org", render.OwnerHeadgate, false},
	{"package/crds/one.yaml", "*", render.OwnerCrossplane, true},
}

// TestDifferential judges the comparison that users see: of two commits, in which the CRD is an object, an active definition, an
// inactive one, or an MRD that Headgate applies. The preview of a served kind is *blocked* exactly if the definition breaks. Then lint
// accepts an object in the first commit, and refuses it in the second one, unless all that the object loses is a null: lint accepts nulls
// that the API server drops.
//
//test:long
func TestDifferential(t *testing.T) {
	n, nulls := 0, 0
	words := map[report.Word]int{}
	schema.Differential(t, func(before, after *unstructured.Unstructured) schema.Difference {
		way := ways[n%len(ways)]
		n++
		difference, word := way.preview(t, before, after)
		words[word]++
		if breaks := len(difference.Breaking()) > 0; way.served && breaks != (word == report.Blocked) {
			t.Errorf("%s is %s with %v", before.GetName(), word, difference.Changes)
		}
		return difference
	}, func(before, after *unstructured.Unstructured, of schema.Witness) error {
		err := shown(before, after, of)
		if errors.Is(err, errAccepted) && hasNull(of.Object.Object) {
			nulls++
			return nil
		}
		return err
	})
	t.Logf("previews: %v; %d breaks lose only a null", words, nulls)
}

// preview compares two commits that differ in a CRD.
func (w way) preview(t *testing.T, before, after *unstructured.Unstructured) (schema.Difference, report.Word) {
	t.Helper()
	seen, err := baseline.Baseline{Base: w.commit(t, before), Sync: given.Sync}.Observe(t.Context(), w.commit(t, after))
	if err != nil {
		t.Fatal(err)
	}
	p, err := draft.Compute(seen, guard.Guarding{}.Guards()...)
	if err != nil {
		t.Fatal(err)
	}
	word := report.Judge(report.New(p, nil, false)).Word
	for _, s := range p.Steps {
		if s.ID.Name == before.GetName() {
			return s.Schema(), word
		}
	}
	for _, e := range p.Effects {
		if e.On.Name == before.GetName() && e.Change != nil {
			return e.Change.Schema(), word
		}
	}
	return schema.Difference{}, word
}

func (w way) commit(t *testing.T, crd *unstructured.Unstructured) render.Desired {
	t.Helper()
	raw, err := yaml.Marshal(crd.Object)
	if err != nil {
		t.Fatal(err)
	}
	return given.Desired(t, w.owner, map[string]string{w.path: string(raw), "policy.yaml": given.Policy("all", w.policy)})
}

// shown returns an error unless lint accepts the object of a witness under the first definition, and refuses it, or its update,
// under the second one.
func shown(before, after *unstructured.Unstructured, of schema.Witness) error {
	if of.Object == nil {
		return errors.New("there is no object")
	}
	wrong := func(crd *unstructured.Unstructured) []check.Problem {
		kind := check.OfCRD(func() (*unstructured.Unstructured, error) { return crd, nil })
		o := of.Object.DeepCopy()
		o.SetAPIVersion(versionOf(crd))
		found := kind.Check(o.DeepCopy()).Errors
		if next := of.Update; next != nil {
			next = next.DeepCopy()
			next.SetAPIVersion(versionOf(crd))
			found = append(found, kind.(check.Updater).Update(next, o)...)
		}
		return found
	}
	if found := wrong(before); len(found) > 0 {
		return fmt.Errorf("lint already refuses it: %v", found)
	}
	if found := wrong(after); len(found) == 0 {
		return errAccepted
	}
	return nil
}

var errAccepted = errors.New("lint accepts it still")

func hasNull(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasNull)
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return v == nil
}

// versionOf returns the API version of a CRD with one version.
func versionOf(crd *unstructured.Unstructured) string {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	all, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	name, _, _ := unstructured.NestedString(all[0].(map[string]any), "name")
	return group + "/" + name
}
