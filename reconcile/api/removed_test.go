package api

import (
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
)

// A field that goes is accepted, has its effect, and its line is named.
func TestRemovedField(t *testing.T) {
	const file = "apiVersion: headgate.dev/v1alpha1\nkind: Sync\nmetadata: {name: a}\nspec:\n  source: {repo: https://git.example.org/a}\n  maxPrunes: 3\n"
	if _, warnings, err := DecodeWarned([]byte(file)); err != nil || warnings != nil {
		t.Fatalf("%v, %v", warnings, err)
	}
	before := v1alpha1.Removals
	v1alpha1.Removals = []v1alpha1.Removal{{Field: "spec.maxPrunes", Since: "v0.4", Instead: "set spec.prunes"}, {Field: "spec.interval", Since: "v0.4", Instead: "set spec.poll"}}
	t.Cleanup(func() { v1alpha1.Removals = before })
	syncs, warnings, err := DecodeWarned([]byte("---\n" + file))
	if err != nil || len(syncs) != 1 || *syncs[0].Spec.MaxPrunes != 3 {
		t.Fatalf("%v, %v", syncs, err)
	}
	var texts []string
	for _, w := range warnings {
		texts = append(texts, w.Error())
	}
	if diff := cmp.Diff([]string{"line 7: spec.maxPrunes: goes after two minor versions from v0.4: set spec.prunes"}, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
