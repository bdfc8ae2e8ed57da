package draft

import (
	"cmp"
	"testing"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The state of the cluster determines each phase of pruning an MRD, so that the next pass continues after a kill at any point. If a
// CRD were deleted with its MRD, so would be every custom resource.
func TestKeepCRDs(t *testing.T) {
	mrd := crossplane.MRD("boats.example.org")
	for name, tc := range map[string]struct {
		reason           string
		action           plan.Action // "" means a prune
		protected, going bool
		unknown          bool // not read yet
		answer           any
		do               plan.Do
		more, waits      bool
	}{
		"Alone":       {reason: "Without a CRD that would be deleted, too, the MRD is deleted.", do: plan.DoDelete},
		"Protect":     {reason: "A CRD that would be deleted, too, is protected first.", answer: question.Departure{Takes: true, Owns: true}, do: plan.DoProtect, more: true},
		"NotAsked":    {reason: "The CRD is protected while Headgate does not know whether it would be deleted.", unknown: true, do: plan.DoProtect, more: true},
		"Unreadable":  {reason: "An unreadable object is not deleted.", answer: question.Unknown{Why: reason.CodedError{Reason: reason.Failed.With("forbidden")}}, do: plan.DoDelete},
		"Delete":      {reason: "The MRD is deleted once its CRD is protected.", protected: true, answer: question.Departure{Takes: true, Owns: true}, do: plan.DoDelete, more: true},
		"LeftOver":    {reason: "An unnecessary finalizer is removed first.", protected: true, do: plan.DoUnprotect, more: true},
		"Waits":       {reason: "Crossplane may not have seen the deletion yet.", protected: true, going: true, answer: question.Departure{Takes: true, Owns: true, Established: "EstablishedManagedResource"}, waits: true},
		"WaitsOwned":  {reason: "Crossplane may not have seen the deletion yet, although the garbage collector has already removed the owner.", protected: true, going: true, answer: question.Departure{Takes: true, Established: "EstablishedManagedResource"}, waits: true},
		"Disown":      {reason: "Once Crossplane has seen the deletion, it no longer makes the MRD an owner.", protected: true, going: true, answer: question.Departure{Takes: true, Owns: true, Established: crossplane.Terminating}, do: plan.DoDisown, more: true},
		"Unprotect":   {reason: "Only a CRD without that owner outlives the MRD.", protected: true, going: true, answer: question.Departure{Takes: true, Established: crossplane.Terminating}, do: plan.DoUnprotect},
		"OtherOwner":  {reason: "The deleted owner is also removed from a CRD with a package revision as another owner.", protected: true, going: true, answer: question.Departure{Owns: true}, do: plan.DoDisown, more: true},
		"GoesUnasked": {reason: "While the owners are unknown, our finalizer stays.", protected: true, going: true, unknown: true, waits: true},
		"Wanted":      {reason: "An MRD that is being deleted although the commit declares it again would also take its CRD along.", action: plan.Update, protected: true, going: true, answer: question.Departure{Takes: true, Owns: true, Established: "EstablishedManagedResource"}, waits: true},
		"WantedOwned": {reason: "The CRD of an MRD that is declared again is freed first.", action: plan.Update, protected: true, going: true, answer: question.Departure{Takes: true, Owns: true, Established: crossplane.Terminating}, do: plan.DoDisown, more: true},
		"WantedFreed": {reason: "Once the CRD is free, the MRD may be deleted, and is created again.", action: plan.Update, protected: true, going: true, answer: question.Departure{Takes: true, Established: crossplane.Terminating}, do: plan.DoUnprotect, more: true},
		"WantedStays": {reason: "An MRD that is declared again and is not being deleted only loses our finalizer.", action: plan.Update, protected: true, unknown: true, do: plan.DoUnprotect},
		"Leaves":      {reason: "A released MRD that is being deleted must not take its CRD along either.", action: plan.Release, protected: true, going: true, answer: question.Departure{Takes: true, Owns: true, Established: "EstablishedManagedResource"}, waits: true},
		"LeavesOwned": {reason: "The CRD of a released MRD is freed first.", action: plan.Release, protected: true, going: true, answer: question.Departure{Takes: true, Owns: true, Established: crossplane.Terminating}, do: plan.DoDisown, more: true},
		"LeavesFreed": {reason: "Once the CRD is free, the MRD is released.", action: plan.Release, protected: true, going: true, answer: question.Departure{Takes: true, Established: crossplane.Terminating}, do: plan.DoRelease},
		"LeavesStays": {reason: "An MRD that is not being deleted is released immediately.", action: plan.Release, protected: true, unknown: true, do: plan.DoRelease},
		"GoneAlready": {reason: "Headgate sends nothing for an MRD that a user is deleting.", going: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := drafted{Plan: plan.Plan{Steps: []plan.Step{{ID: mrd, Action: cmp.Or(tc.action, plan.Prune), UID: "u", Write: plan.Write{Frees: tc.action == plan.Update}, Removal: plan.Removal{Protected: tc.protected, Deleting: tc.going && !tc.protected}, Terminating: tc.going}}}}
			if tc.answer == nil && !tc.unknown {
				tc.answer = question.Departure{}
			}
			p.keepCRDs(facts.Observed{Answers: question.Answers{question.Departs{Of: mrd}: tc.answer}, Asks: &p.Unanswered})
			s := p.Steps[0]
			_, fails := tc.answer.(question.Unknown)
			if s.Do() != tc.do || s.More() != tc.more || s.Waiting() != tc.waits || (s.Err != nil) != fails || (len(p.Unanswered) > 0) != (tc.unknown && (tc.going || tc.action == "")) {
				t.Errorf("%s\n%q, more %v, waits for %q, error %v, open questions %v", tc.reason, s.Do(), s.More(), s.Waits, s.Err, p.Unanswered)
			}
		})
	}
}

// An MRD that a user is deleting may be gone before the next pass. If its CRD stays, the inventory records the CRD before that;
// otherwise the CRD would be served forever without any report. A CRD that the garbage collector deletes is not reported as
// staying.
func TestMRDThatAUserDeletes(t *testing.T) {
	mrd, crd := crossplane.MRD("boats.example.org"), plan.CRD("boats.example.org")
	for name, tc := range map[string]struct {
		reason     string
		finalizers []string
		owned      bool
		stays      bool
	}{
		"Orphan":     {reason: "kubectl delete --cascade=orphan keeps the CRD.", finalizers: []string{metav1.FinalizerOrphanDependents}, owned: true, stays: true},
		"Orphaned":   {reason: "The garbage collector has removed the owner, but not yet its finalizer.", finalizers: []string{metav1.FinalizerOrphanDependents}, stays: true},
		"Disowned":   {reason: "A CRD without an owner stays.", finalizers: []string{"example.org/other"}, stays: true},
		"Foreground": {reason: "kubectl delete also deletes the CRD.", finalizers: []string{metav1.FinalizerDeleteDependents}, owned: true},
		"Background": {reason: "kubectl delete also deletes the CRD if another finalizer delays the deletion.", finalizers: []string{"example.org/other"}, owned: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := question.Departure{UID: "c", Owns: tc.owned}
			seen := facts.Observed{
				Ground: facts.Ground{Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{mrd: {UID: "u"}}}},
				Live:   facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{mrd: {ObjectMeta: metav1.ObjectMeta{UID: "u", Finalizers: tc.finalizers}}}},
			}
			p := drafted{Plan: plan.Plan{Want: render.Desired{Owner: render.OwnerCrossplane}, Steps: []plan.Step{{ID: mrd, Action: plan.Prune, UID: "u", Terminating: true, Removal: plan.Removal{Deleting: true}}}}}
			seen.Asks = &p.Unanswered
			p.leaveCRDs(seen)
			if len(p.Unanswered) != 1 || len(p.Behind) > 0 {
				t.Fatalf("Before the answer, the plan asks for the fate of the CRD: %v, %v", p.Unanswered, p.Behind)
			}
			seen.Answers = question.Answers{question.Departs{Of: mrd}: a}
			p.leaveCRDs(seen)
			next := inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{}}
			record.TakeLeft(p.Plan, &next, []plan.Outcome{{ID: mrd, Action: plan.Prune}})
			if e, recorded := next.Entries[crd]; recorded != tc.stays || recorded && e.UID != "c" {
				t.Errorf("%s: %+v", tc.reason, next.Entries)
			}
		})
	}
}
