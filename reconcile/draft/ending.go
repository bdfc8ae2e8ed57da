package draft

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Leaving returns the step for an object that the commit does not want and that s prunes or releases. It returns false if the
// inventory only has to forget the object. Nothing is sent for a deletion that has begun, unless that waits for our finalizer.
func Leaving(p plan.Plan, s plan.Step, live *metav1.PartialObjectMetadata) (plan.Step, bool) {
	switch {
	case s.Action == plan.Release:
		return s, inventory.Ours(live, p.Sync)
	case s.Terminating && !s.Protected:
		s.Deleting, s.Since, s.Reason = true, *live.DeletionTimestamp, facts.WhyDeleting(live)
	}
	return s, true
}

// releaseRetained changes the steps that guards retain into releases, because the sync ends.
func (p *drafted) releaseRetained(facts.Observed) {
	for i, s := range p.Steps {
		if s.Action == plan.Keep && s.Cause == plan.Retain {
			p.Steps[i].Action = plan.Release
		}
	}
}

// OpenForemost returns the open questions about steps that can be carried out now.
func OpenForemost(p plan.Plan) []question.Any {
	first := map[manifest.ID]bool{}
	for _, s := range plan.Foremost(p).Steps {
		first[s.ID] = true
	}
	return slices.DeleteFunc(p.Open(), func(q question.Any) bool { return !first[q.About()] })
}

// notesOnEnding returns notes about objects that an ending unexpectedly leaves.
func notesOnEnding(p plan.Plan, seen facts.Ground) []manifest.Finding {
	if len(seen.Inventory.Entries) == 0 && p.Version == "" {
		return []manifest.Finding{{
			Rule: "nothing-owned", Severity: manifest.Note, About: manifest.About{},
			Message: fmt.Sprintf("the sync %s owns nothing in this cluster", p.Sync),
			Fix:     "name the sync with --name and --namespace",
		}}
	}
	var names []string
	for _, s := range p.Steps {
		if crossplane.IsMRD(s.ID) && s.Action == plan.Prune {
			names = append(names, s.ID.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []manifest.Finding{{
		Rule: plan.RuleLeft, Severity: manifest.Note, About: manifest.About{},
		Message: fmt.Sprintf("Crossplane made CRDs of %s that will be deleted, for example %s: the CRDs stay, and nothing updates them", manifest.Count(len(names), "definition"), names[0]),
		Fix:     "delete those that you do not need by hand",
	}}
}
