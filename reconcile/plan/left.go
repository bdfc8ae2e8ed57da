package plan

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// When an MRD of this sync is deleted, the CRD that Crossplane made for it stays, with all stored objects. Then the inventory takes
// over the CRD. The CRD does not carry Headgate's marks; a proof made with the inventory's key shows that it may be pruned.

// The codes of CRDs that definitions leave.
const (
	LeftByDefinition Code = "LeftByDefinition" // an MRD of this sync is gone, and its CRD is still there
)

// leavesBehind records the CRD that stays when its MRD is deleted, and adds a finding about it.
func (p *drafted) leavesBehind(mrd manifest.ID, crd types.UID, seen Observed) {
	if crd == "" || p.Stance.In(Ending) || p.Want.Owner != render.OwnerCrossplane {
		return
	}
	if _, owned := seen.Inventory.Entries[mrd]; !owned {
		return
	}
	e := inventory.Entry{UID: crd, Policy: inventory.ObservableAndDeletable, Definition: true, Strategy: "Apply", Actuation: "Skipped", Reconcile: "Succeeded"}
	e.Proof = seen.proof(e.Policy, &metav1.ObjectMeta{UID: crd})
	if p.Behind == nil {
		p.Behind = map[manifest.ID]inventory.Entry{}
	}
	p.Behind[mrd] = e
	f := manifest.Finding{
		Rule: ruleLeft, Severity: manifest.Note,
		Message: fmt.Sprintf("the CRD %s stays when its definition is gone: it is served, and nothing updates it", mrd.Name),
		Fix:     "delete it if nothing needs it: kubectl delete crd " + mrd.Name + "; or set deactivation: WhenUnused, and Headgate prunes it once no custom resource uses it",
	}
	if seen.Terms.Deactivate {
		f.Fix = "wait for the next pass, which prunes it if no custom resource uses it"
	}
	p.Notes = append(p.Notes, f)
}

// keepLeft decides on a CRD that a definition left behind. It returns false if the CRD is pruned like any other object.
func (p *drafted) keepLeft(id manifest.ID, e inventory.Entry, live *metav1.PartialObjectMetadata, wanted map[manifest.ID]bool, seen Observed) bool {
	switch {
	case !e.IsLeft(id):
		return false
	case wanted[crossplane.MRD(id.Name)] || len(live.OwnerReferences) > 0 || live.UID != e.UID: // owned again, or another CRD
		p.Gone = append(p.Gone, id)
		return true
	case p.Stance.In(Ending) || seen.Deactivates(p.Want):
		return false
	}
	s := prune(id, e, live)
	s.Action, s.Would, s.Cause, s.Guard, s.Reason, s.Definition = Keep, Prune, Retain, Final, LeftByDefinition.With(), true
	p.Steps = append(p.Steps, s)
	return true
}

// takeLeft adds the CRDs that stay to an inventory after their MRDs were deleted.
func (p Plan) takeLeft(next *inventory.Inventory, done []Outcome) {
	for mrd, e := range p.Behind {
		gone := slices.Contains(p.Gone, mrd) || slices.ContainsFunc(done, func(o Outcome) bool {
			return o.ID == mrd && o.Action == Prune && o.isOver() && o.Deleting.None()
		})
		if _, owned := next.Entries[CRD(mrd.Name)]; gone && !owned {
			next.Entries[CRD(mrd.Name)] = e
		}
	}
}
