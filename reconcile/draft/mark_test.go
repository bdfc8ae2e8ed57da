package draft_test

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/inventory"
)

// kubectl stores a copy of the applied object in an annotation. A mark that depended on that annotation would let readers of the
// inventory guess values.
func TestMarkTellsNoSecret(t *testing.T) {
	u := given.ConfigMap("a")
	plain := inventory.Mark(given.Live(u, "u"))
	if inventory.Mark(given.Live(u, "u", given.Annotated("kubectl.kubernetes.io/last-applied-configuration", "hunter2"))) != plain {
		t.Error("the mark reveals the content of the annotation")
	}
	if inventory.Mark(given.Live(u, "u", given.Annotated("example.org/other", "hunter2"))) == plain {
		t.Error("other annotations are part of the mark")
	}
}
