package inventory_test

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An orphan has both marks, our field manager applied them, and no sync of that name may make passes. Orphan is no owner: what it finds
// is for people.
func TestOrphan(t *testing.T) {
	key := given.Sync.Key()
	id := manifest.IDOf(given.ConfigMap("a"))
	marks := `{"f:metadata":{"f:labels":{"f:` + inventory.SyncLabel + `":{}},"f:annotations":{"f:` + inventory.InventoryAnnotation + `":{}}}}`
	ours := given.ManagedBy(inventory.Manager, metav1.ManagedFieldsOperationApply, marks)
	theirs := given.ManagedBy("kubectl", metav1.ManagedFieldsOperationApply, marks)
	long := inventory.Sync{Namespace: "a-team-with-a-very-long-name-indeed", Name: "a-sync-with-a-very-long-name-indeed-too"}
	source := func(object string) map[string]inventory.SourceRecord {
		return map[string]inventory.SourceRecord{key: {Repository: "example.org/a", Object: object}}
	}
	objects := func(uid types.UID) map[string]types.UID { return map[string]types.UID{key: uid} }
	for name, c := range map[string]struct {
		reason string
		marked func(*metav1.PartialObjectMetadata)
		known  inventory.Known
		want   string
	}{
		"Ended":     {"Its Sync object is gone, and the inventory stays.", ours, inventory.Known{Sources: source("u")}, given.Sync.String()},
		"Lost":      {"The inventory has gone with its namespace.", ours, inventory.Known{}, given.Sync.String()},
		"Other":     {"Another Sync lives.", ours, inventory.Known{Objects: map[string]types.UID{"other.sync": "u"}}, given.Sync.String()},
		"NewObject": {"Another object of the name has not taken it over yet, or may not: it has another source.", ours, inventory.Known{Sources: source("u"), Objects: objects("new")}, given.Sync.String()},
		"Long":      {"A shortened key is shown as it is.", given.Both(ours, given.Labelled(inventory.SyncLabel, long.Key()), given.Annotated(inventory.InventoryAnnotation, long.Key())), inventory.Known{}, long.Key()},
		"Lives":     {"The Sync object exists.", ours, inventory.Known{Sources: source("u"), Objects: objects("u")}, ""},
		"Rebuilds":  {"The next pass of the Sync rebuilds its inventory.", ours, inventory.Known{Objects: objects("u")}, ""},
		"Command":   {"A sync of the command line has no object.", ours, inventory.Known{Sources: source("")}, ""},
		"TakenOver": {"A new Sync object makes its first pass over the inventory of the command line.", ours, inventory.Known{Sources: source(""), Objects: objects("u")}, ""},
		"Copied":    {"Another writer set the marks.", theirs, inventory.Known{}, ""},
		"Labelled":  {"Another writer changed our label.", given.Both(ours, given.Labelled(inventory.SyncLabel, "their.sync")), inventory.Known{}, ""},
		"Unmarked":  {"It was released.", given.Both(ours, given.Labelled(inventory.SyncLabel, ""), given.Annotated(inventory.InventoryAnnotation, "")), inventory.Known{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, is := c.known.Orphan(id, given.Live(given.ConfigMap("a"), "o", c.marked))
			want := inventory.Orphan{}
			if c.want != "" {
				want = inventory.Orphan{Object: id, LastSync: c.want}
			}
			if diff := cmp.Diff(want, got); diff != "" || is != (c.want != "") {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
