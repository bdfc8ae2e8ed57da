package inventory_test

import (
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func TestSettled(t *testing.T) {
	a, b, c, d := manifest.IDOf(given.ConfigMap("a")), manifest.IDOf(given.ConfigMap("b")), manifest.IDOf(given.ConfigMap("c")), manifest.IDOf(given.ConfigMap("d"))
	before := inventory.Entry{UID: "u", Digest: "before", Mark: "m", Strategy: "Apply", Actuation: "Succeeded", Reconcile: "Succeeded"}
	p := plan.Plan{
		Steps: []plan.Step{{ID: a, Action: plan.Create}, {ID: b, Action: plan.Update}, {ID: c, Action: plan.Prune}},
		Gone:  []manifest.ID{d},
	}
	have := inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{b: before, c: before, d: before}}

	intent := record.Intent(p, have)
	if e, ok := intent.Entries[a]; !ok || e.UID != "" {
		t.Errorf("intent: %v, want an entry without UID: a crash after it must orphan nothing", e)
	}
	if _, ok := have.Entries[a]; ok {
		t.Error("Intent changed the inventory it was given")
	}

	settled := record.Settled(p, have, []plan.Outcome{
		{ID: a, Action: plan.Create, UID: "new", Digest: "x", Mark: "y"},
		{ID: b, Action: plan.Update, Err: given.ErrBoom},
		{ID: c, Action: plan.Prune, Err: given.ErrBoom},
	})
	if e := settled.Entries[a]; e != inventory.Succeeded("new", "x", "y") {
		t.Errorf("created: %v", e)
	}
	if e := settled.Entries[b]; e.UID != "u" || e.Digest != "before" || e.Actuation != "Failed" {
		t.Errorf("an update that failed must stay known as it was: %v", e)
	}
	if _, ok := settled.Entries[c]; !ok {
		t.Error("what failed to be pruned must stay owned")
	}
	if _, ok := settled.Entries[d]; ok {
		t.Error("what is gone and not wanted must be forgotten")
	}
	for did, want := range map[plan.Do]types.UID{plan.DoAdopt: "restored", plan.DoMigrate: "u"} {
		if e := record.Settled(p, have, []plan.Outcome{{ID: b, Action: plan.Update, Did: did, UID: "restored"}}).Entries[b]; e.UID != want || e.Mark != "m" {
			t.Errorf("an object that a backup restored under another UID is ours once its fields are (%s): %v", did, e)
		}
	}
	if _, ok := record.Settled(p, have, []plan.Outcome{{ID: c, Action: plan.Prune}}).Entries[c]; ok {
		t.Error("what was pruned must be forgotten")
	}
}

func TestEntriesOfOthers(t *testing.T) {
	got, err := inventory.Entries(map[string]string{
		"default_a__ConfigMap":                                "",
		"_system__node_rbac.authorization.k8s.io_ClusterRole": `{"actuation":"Succeeded","reconcile":"Succeeded","strategy":"Apply"}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[manifest.ID]inventory.Entry{
		{Kind: "ConfigMap", Namespace: "default", Name: "a"}:                           {},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:node"}: {Actuation: "Succeeded", Reconcile: "Succeeded", Strategy: "Apply"},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(inventory.Entry{})); diff != "" {
		t.Errorf("what cli-utils' own tools wrote must be readable (-want +got):\n%s", diff)
	}
	if _, err := inventory.Entries(map[string]string{"nonsense": ""}); err == nil {
		t.Error("an inventory that cannot be read whole must not be acted on")
	}
}

func TestInventoryRoundTrip(t *testing.T) {
	name := rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		inv := inventory.Inventory{Entries: rapid.MapOf(
			rapid.Custom(func(t *rapid.T) manifest.ID {
				return manifest.ID{Group: name.Draw(t, "group"), Kind: rapid.StringMatching(`[A-Z][A-Za-z]{0,10}`).Draw(t, "kind"), Namespace: name.Draw(t, "namespace"), Name: name.Draw(t, "name")}
			}),
			rapid.Custom(func(t *rapid.T) inventory.Entry {
				return inventory.Succeeded(types.UID(name.Draw(t, "uid")), name.Draw(t, "digest"), name.Draw(t, "mark"))
			}),
		).Draw(t, "entries")}
		data, err := inv.Data()
		if err != nil {
			t.Fatal(err)
		}
		got, err := inventory.Entries(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(inv.Entries, got, cmpopts.EquateComparable(inventory.Entry{})); diff != "" {
			t.Errorf("(-stored +read):\n%s", diff)
		}
	})
}

func TestMark(t *testing.T) {
	base := func() *metav1.PartialObjectMetadata {
		return given.Live(given.ConfigMap("a"), "u", func(m *metav1.PartialObjectMetadata) {
			m.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: inventory.Manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)},
				{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
			}
		})
	}
	cases := map[string]struct {
		reason string
		edit   func(*metav1.PartialObjectMetadata)
		moves  bool
	}{
		"Nothing": {"An unchanged object has the same mark.", func(*metav1.PartialObjectMetadata) {}, false},
		"StatusWrite": {"Controllers write the status all the time.", func(m *metav1.PartialObjectMetadata) {
			m.ResourceVersion = "8"
			m.ManagedFields[1].FieldsV1.SetRawString(`{}`)
		}, false},
		"SpecEdit":     {"", func(m *metav1.PartialObjectMetadata) { m.Generation = 2 }, true},
		"LabelLost":    {"", func(m *metav1.PartialObjectMetadata) { delete(m.Labels, inventory.SyncLabel) }, true},
		"Annotation":   {"", given.Annotated("a", "b"), true},
		"OwnerAdded":   {"", func(m *metav1.PartialObjectMetadata) { m.OwnerReferences = []metav1.OwnerReference{{UID: "x"}} }, true},
		"FieldsWiped":  {"", func(m *metav1.PartialObjectMetadata) { m.ManagedFields = nil }, true},
		"FieldLost":    {"Another manager took a field from us.", func(m *metav1.PartialObjectMetadata) { m.ManagedFields[0].FieldsV1.SetRawString(`{}`) }, true},
		"Recreated":    {"", func(m *metav1.PartialObjectMetadata) { m.UID = "other" }, true},
		"Deleted":      {"", func(m *metav1.PartialObjectMetadata) { now := metav1.Now(); m.DeletionTimestamp = &now }, true},
		"NoGeneration": {"A kind without a generation changes with every write.", func(m *metav1.PartialObjectMetadata) { m.Generation = 0; m.ResourceVersion = "8" }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			edited := base()
			tc.edit(edited)
			if moved := inventory.Mark(edited) != inventory.Mark(base()); moved != tc.moves {
				t.Errorf("%s\nmoved: %v, want %v", tc.reason, moved, tc.moves)
			}
		})
	}
}

func TestKey(t *testing.T) {
	long := inventory.Sync{Namespace: strings.Repeat("n", 60), Name: strings.Repeat("s", 60)}
	other := inventory.Sync{Namespace: long.Namespace, Name: long.Name + "s"}
	if len(long.Key()) > 63 || long.Key() == other.Key() {
		t.Errorf("keys of long names must fit a label and differ: %s, %s", long.Key(), other.Key())
	}
	if got := given.Sync.Key(); got != "headgate-system.prod" {
		t.Errorf("Key() = %q", got)
	}
}

func TestChanges(t *testing.T) {
	was, is := given.CRD("buckets", "Bucket"), given.CRD("buckets", "Bucket")
	was.Object["spec"].(map[string]any)["versions"] = []any{map[string]any{"name": "v1", "served": true}}
	is.Object["spec"].(map[string]any)["versions"] = []any{map[string]any{"name": "v2", "served": true}, map[string]any{"name": "v1", "served": false}}
	is.SetResourceVersion("9")
	got := plan.Step{Action: plan.Update, ID: manifest.IDOf(was), Write: plan.Write{Live: was, After: is}}.Changes()
	want := []diff.Change{
		{Path: "spec.versions[v1].served", From: "true", To: "false"},
		{Path: "spec.versions[v2]", To: `{"name":"v2","served":true}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("versions are known by name, and what the server keeps is no change (-want +got):\n%s", diff)
	}

	secret, other := given.ConfigMap("s"), given.ConfigMap("s")
	secret.SetKind("Secret")
	other.SetKind("Secret")
	secret.Object["data"] = map[string]any{"password": "Y2FuYXJ5"}
	secret.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "Y2FuYXJ5"})
	for _, c := range (plan.Step{Action: plan.Update, ID: manifest.IDOf(secret), Write: plan.Write{Live: secret, After: other}}).Changes() {
		if strings.Contains(c.From+c.To, "Y2FuYXJ5") {
			t.Errorf("%s shows a secret: %v", c.Path, c)
		}
	}
}
