package draft

import (
	"fmt"

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

// leavesBehind records the CRD that stays when its MRD is deleted, and adds a finding about it.
func (p *drafted) leavesBehind(mrd manifest.ID, crd types.UID, seen facts.Observed) {
	if crd == "" || p.Want.Owner != render.OwnerCrossplane {
		return
	}
	if _, owned := seen.Inventory.Entries[mrd]; !owned {
		return
	}
	e := inventory.Entry{UID: crd, Policy: inventory.ObservableAndDeletable, Definition: true, Strategy: "Apply", Actuation: "Skipped", Reconcile: "Succeeded"}
	e.Proof = proof(seen, e.Policy, &metav1.ObjectMeta{UID: crd})
	if p.Behind == nil {
		p.Behind = map[manifest.ID]inventory.Entry{}
	}
	p.Behind[mrd] = e
	f := manifest.Finding{
		Rule: plan.RuleLeft, Severity: manifest.Note, About: manifest.About{Object: manifest.ID{Group: mrd.Group, Kind: mrd.Kind, Name: mrd.Name}},
		Message: fmt.Sprintf("the CRD %s stays when its definition is gone: it is served, and nothing updates it", mrd.Name),
		Fix:     "delete it if nothing needs it: kubectl delete crd " + mrd.Name + "; or set deactivation: WhenUnused, and Headgate prunes it once no custom resource uses it",
	}
	if seen.Terms.Deactivate {
		f.Fix = "wait for the next pass, which prunes it if no custom resource uses it"
	}
	p.Notes = append(p.Notes, f)
}

// keepLeft decides on a CRD that a definition left behind. It returns false if the CRD is pruned like any other object.
func (p *drafted) keepLeft(id manifest.ID, e inventory.Entry, live *metav1.PartialObjectMetadata, wanted map[manifest.ID]bool, seen facts.Observed) bool {
	switch {
	case !e.IsLeft(id):
		return false
	case wanted[crossplane.MRD(id.Name)] || len(live.OwnerReferences) > 0 || live.UID != e.UID: // owned again, or another CRD
		p.Gone = append(p.Gone, id)
		return true
	case p.Stance.In(plan.Ending) || Deactivates(seen, p.Want):
		return false
	}
	s := prune(id, e, live)
	s.Action, s.Would, s.Cause, s.Guard, s.Reason, s.Definition = plan.Keep, plan.Prune, plan.Retain, plan.Final, reason.LeftByDefinition.With(), true
	p.Steps = append(p.Steps, s)
	return true
}
