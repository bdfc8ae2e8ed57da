package inventory_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"
)

// The failures of a pass fit into an annotation, whatever an API server answers.
func TestFailures(t *testing.T) {
	var all inventory.Failures
	for i := range 200 {
		all = append(all, inventory.Failure{Object: manifest.ID{Kind: "ConfigMap", Name: fmt.Sprint(1000 - i)}, Why: strings.Repeat("é\n", 5000)})
	}
	bounded := all.Bounded()
	if len(bounded) != 50 || bounded[0].Object.Name != "1000" {
		t.Errorf("%d failures, from %s", len(bounded), bounded[0].Object)
	}
	for _, f := range bounded {
		if len(f.Why) > 304 || !utf8.ValidString(f.Why) || strings.Contains(f.Why, "\n") {
			t.Fatalf("%q", f.Why)
		}
	}
	short := inventory.Failures{{Object: manifest.ID{Name: "a"}, Why: "refused:\n  twice"}}.Bounded()
	if why := short.Of(manifest.ID{Name: "a"}); why != "refused: twice" || short.Of(manifest.ID{Name: "b"}) != "" {
		t.Errorf("%q", why)
	}
}
