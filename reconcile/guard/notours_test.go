package guard

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A user deleted an object, which now waits only for Headgate's finalizer. Headgate removes the finalizer even if the marks are
// missing or changed, because no other tool does. Another object with the same name keeps it: that object is held, or released to
// its owner.
func TestFinalizerWithoutMarks(t *testing.T) {
	id := manifest.IDOf(given.ConfigMap("a"))
	marks := map[string]map[string]string{"lost": nil, "another inventory": {inventory.InventoryAnnotation: "other"}}
	for name, annotations := range marks {
		for uid, want := range map[types.UID]plan.Action{"": plan.Prune, "another": plan.Hold} {
			seen := given.Owning(t, "a")
			live := seen.Objects[id].DeepCopy()
			now := metav1.Now()
			live.Labels, live.Annotations, live.DeletionTimestamp, live.Finalizers = nil, annotations, &now, []string{plan.ProtectFinalizer}
			if uid != "" {
				live.UID = uid
			}
			seen.Objects[id] = live
			p := given.Computed(t, render.Desired{}, seen, draft.Guard{Name: NotOurs, Phase: draft.Prunes, Rule: draft.Each(notOurs)})
			if uid != "" && annotations != nil {
				want = plan.Release
			}
			if s := p.Steps[0]; s.Action != want {
				t.Errorf("marks: %s, UID %q: %s %q %s", name, uid, s.Action, s.Guard, s.Reason)
			}
		}
	}
}

// A backup restored an object under another UID, and the commit does not want it: an approval prunes it. An object without the marks, or
// one that was made while Headgate created its own, is another's, and no approval prunes it.
func TestPruneOfARestoredObject(t *testing.T) {
	id := manifest.IDOf(given.ConfigMap("a"))
	none := func(o *metav1.PartialObjectMetadata) { o.Labels = nil }
	for name, tc := range map[string]struct {
		recorded types.UID
		live     *metav1.PartialObjectMetadata
		by       plan.GuardName
		approved plan.Action
	}{
		"Restored": {"u", given.Live(given.ConfigMap("a"), "restored"), Rebuilt, plan.Prune},
		"Foreign":  {"u", given.Live(given.ConfigMap("a"), "restored", none), NotOurs, plan.Hold},
		"Copied":   {"", given.Live(given.ConfigMap("a"), "copy"), NotOurs, plan.Hold},
		"Ours":     {"u", given.Live(given.ConfigMap("a"), "u"), "", plan.Prune},
	} {
		t.Run(name, func(t *testing.T) {
			seen := given.Owning(t, "a", "b")
			e := seen.Inventory.Entries[id]
			e.UID = tc.recorded
			seen.Inventory.Entries[id], seen.Objects[id] = e, tc.live
			want := render.Desired{Objects: []render.Object{given.Wanted(t, given.ConfigMap("b"))}}
			decided := func() (plan.Action, plan.GuardName) {
				p := given.Computed(t, want, seen, Guarding{}.Guards()...)
				s := p.Steps[slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.ID == id })]
				return s.Action, s.Guard
			}
			if action, by := decided(); by != tc.by || (action == plan.Hold) != (tc.by != "") {
				t.Errorf("%s by %q, want %q", action, by, tc.by)
			}
			var digests []string
			for _, guard := range []plan.GuardName{Rebuilt, NotOurs} {
				digests = append(digests, approval.Claim{Guard: string(guard), Action: string(plan.Prune), Of: id, Cause: approval.Object(tc.live.UID)}.Digest())
			}
			seen.Approvals = approval.Given{inventory.InComment: approval.Typed(digests...)}
			if action, by := decided(); action != tc.approved {
				t.Errorf("approved: %s by %q, want %s", action, by, tc.approved)
			}
		})
	}
}

// An approval of a restored object is for the object that the approver saw. A third object that takes its name, with the same marks, is
// asked about again, whatever the first approval was given for and wherever it stands. The approval of other guards is for the name.
func TestApprovalOfARestoredObject(t *testing.T) {
	id := manifest.IDOf(given.ConfigMap("a"))
	want := render.Desired{Revision: "c0ffee", Objects: []render.Object{given.Wanted(t, given.ConfigMap("b"))}}
	decided := func(entry inventory.Entry, uid types.UID, approvals approval.Given) (plan.Step, *plan.Approval) {
		seen := given.Owning(t, "a", "b")
		seen.Inventory.Entries[id], seen.Objects[id], seen.Approvals = entry, given.Live(given.ConfigMap("a"), uid), approvals
		p := given.Computed(t, want, seen, Guarding{}.Guards()...)
		return p.Steps[slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.ID == id })], p.Approval
	}
	for name, entry := range map[string]inventory.Entry{
		"AnotherUID": {UID: "first"},
		"OnlyMarked": {UID: "second", Rebuilt: true},
		"ValuesLost": {UID: "first", Rebuilt: true},
	} {
		_, asked := decided(entry, "second", nil)
		if asked == nil {
			t.Fatalf("%s: nothing is asked", name)
		}
		for _, place := range []inventory.ApprovalPlace{inventory.OnSync, inventory.InComment, inventory.InReview} {
			approved := approval.Given{place: approval.Typed(asked.Digest)}
			if s, _ := decided(entry, "second", approved); s.Action != plan.Prune || s.UID != "second" {
				t.Errorf("%s, approved in %s: %s of %q", name, place, s.Action, s.UID)
			}
			if s, again := decided(entry, "third", approved); s.Action != plan.Hold || again == nil || again.Digest == asked.Digest {
				t.Errorf("%s, approved in %s, and replaced since: %s, asks %v", name, place, s.Action, again)
			}
		}
	}
}

// A CRD that remained after one of the sync's definitions is identified by the inventory. If another tool has taken it over since,
// a destroy would delete that tool's custom resources.
func TestLeftCRDOfAnotherOwner(t *testing.T) {
	id := plan.CRD("buckets.example.org")
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        plan.Action
	}{
		"StillLeft": {want: plan.Prune},
		"OfHelm":    {annotations: map[string]string{"meta.helm.sh/release-name": "storage", "meta.helm.sh/release-namespace": "apps"}, want: plan.Hold},
	} {
		t.Run(name, func(t *testing.T) {
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: id.Name, UID: "u", Annotations: tc.annotations}}
			key := []byte("a key")
			keyed := hmac.New(sha256.New, key)
			fmt.Fprintf(keyed, "%q %q", given.Sync.Key(), live.UID)
			seen := facts.Observed{
				Given: facts.Given{Key: key},
				Ground: facts.Ground{
					Inventory: inventory.Inventory{Sync: given.Sync, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{
						id: {UID: "u", Definition: true, Policy: inventory.ObservableAndDeletable, Proof: inventory.Hash(keyed.Sum(nil))},
					}},
					Kinds:  given.Kinds,
					Stance: plan.Destroying,
				},
				Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: live}},
			}
			p := given.Computed(t, render.Desired{}, seen, draft.Guard{Name: NotOurs, Phase: draft.Prunes, Rule: draft.Each(notOurs)})
			if len(p.Steps) != 1 || p.Steps[0].Action != tc.want {
				t.Errorf("got %+v, want %s", p.Steps, tc.want)
			}
		})
	}
}

// Crossplane made a CRD for an MRD of this sync, and the commit declares the CRD instead. The hold names the way out.
func TestCRDMadeForAnMRD(t *testing.T) {
	crd := given.CRD("buckets", "Bucket")
	id, mrd := manifest.IDOf(crd), crossplane.MRD(crd.GetName())
	of := func(manager string) *metav1.PartialObjectMetadata {
		live := given.Live(crd, "u", given.ManagedBy(manager, metav1.ManagedFieldsOperationApply, `{"f:spec":{}}`))
		live.Labels, live.Annotations = nil, nil
		return live
	}
	left := inventory.Entry{UID: "u", Policy: inventory.ObservableAndDeletable, Definition: true}
	definition := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: mrd.Name, UID: "m"}}
	for name, tc := range map[string]struct {
		owned map[manifest.ID]inventory.Entry
		by    string
		want  reason.Code
	}{
		"Pruned":  {map[manifest.ID]inventory.Entry{mrd: {UID: "m"}}, "apiextensions.crossplane.io/managed", reason.MadeForMRD},
		"Left":    {map[manifest.ID]inventory.Entry{id: left}, "apiextensions.crossplane.io/managed", reason.MadeForMRD},
		"Foreign": {nil, "apiextensions.crossplane.io/managed", reason.MadeByOther},
		"OfFlux":  {map[manifest.ID]inventory.Entry{id: left}, "kustomize-controller", reason.OwnedByTool},
	} {
		seen := given.Owning(t)
		seen.Objects[id] = of(tc.by)
		seen.Objects[mrd] = definition
		maps.Copy(seen.Inventory.Entries, tc.owned)
		p := given.Computed(t, render.Desired{Owner: render.OwnerCrossplane, Objects: []render.Object{given.Wanted(t, crd)}}, seen, draft.Guard{Name: NotOurs, Phase: draft.Writes, Rule: draft.Each(ownedByAnother)})
		for _, s := range p.Steps {
			if s.ID == id && s.Reason.Code != tc.want {
				t.Errorf("%s: %s %s", name, s.Action, s.Reason)
			}
		}
	}
}
