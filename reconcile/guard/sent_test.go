package guard

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Another tool's marks that are in the commit itself do not make that tool the owner, even if the managed fields are gone.
func TestSentMarks(t *testing.T) {
	const fields = `{"f:metadata":{"f:annotations":{"f:meta.helm.sh/release-name":{},"f:crossplane.io/paused":{}},"f:labels":{"f:app.kubernetes.io/managed-by":{}}}}`
	rendered := given.Both(given.Labelled("app.kubernetes.io/managed-by", "Helm"), given.Annotated("meta.helm.sh/release-name", "app"), given.Annotated("crossplane.io/paused", "true"))
	u := given.ConfigMap("a")
	id := manifest.IDOf(u)
	asApplied := given.Live(u, "u", rendered, given.ManagedBy(inventory.Manager, metav1.ManagedFieldsOperationApply, fields))
	entry := plan.Applied(asApplied, "digest")
	cases := map[string]struct {
		reason string
		live   *metav1.PartialObjectMetadata
		entry  inventory.Entry
		want   string
	}{
		"AsApplied":    {"Managed fields show that Headgate sent the marks.", asApplied, inventory.Entry{UID: "u"}, ""},
		"Wiped":        {"The entry records the marks that were sent.", given.Live(u, "u", rendered), entry, ""},
		"Restored":     {"The entry also counts for an object that a backup restored.", given.Live(u, "other", rendered, given.MarkedBy("velero-server", metav1.ManagedFieldsOperationUpdate)), entry, ""},
		"NotSent":      {"A mark that the entry does not record is a claim, whatever the UID is.", given.Live(u, "u", given.Labelled("app.kubernetes.io/managed-by", "Helm")), inventory.Entry{UID: "u"}, "Helm"},
		"AnotherValue": {"Another Helm release took the object over.", given.Live(u, "u", rendered, given.Annotated("meta.helm.sh/release-name", "other")), entry, "the Helm release other"},
		"AnotherMark":  {"Another tool took the object over.", given.Live(u, "u", rendered, given.Labelled("kapp.k14s.io/app", "1")), entry, "the kapp app 1"},
		"Manager":      {"A field manager alone is not a mark.", given.Live(u, "u", rendered, given.ManagedBy("kapp-server", metav1.ManagedFieldsOperationUpdate, "{}")), entry, "kapp (field manager kapp-server)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{id: tc.entry}}}}
			if diff := cmp.Diff(tc.want, seen.ClaimOn(id, tc.live).By); diff != "" {
				t.Errorf("%s\nclaim(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	seen := facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{id: entry}}}}
	seen.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u", rendered)}
	if r := paused(plan.Step{ID: id, Action: plan.Update}, draft.Case{Seen: seen}); r.Response() != plan.Allowed {
		t.Errorf("The commit paused it, and not another writer: %v", r)
	}
	seen.Objects[id].Annotations["crossplane.io/paused"] = "True" // differs from the value that we sent
	if entry.Foreign == "" || ownership.SentByUs(seen.Objects[id], entry.Foreign, true, "crossplane.io/paused") {
		t.Error("Only the value that was sent is remembered.")
	}
	old := entry
	old.Foreign = ""
	o := given.Wanted(t, u)
	old.Digest = given.Sync.Digest(o)
	old.Mark = inventory.Mark(asApplied)
	seen = facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{id: old}}, Kinds: given.Kinds}}
	seen.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{id: asApplied}
	p := given.Computed(t, render.Desired{Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
	if p.Writes() || p.Steps[0].Renew.Foreign != entry.Foreign {
		t.Errorf("A field that an older version did not record is recorded as soon as it is seen: %+v", p.Steps[0])
	}
}
