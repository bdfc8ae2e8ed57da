// Package plan has the values of a pass: the plan, its steps and effects, the rulings on them, and the outcomes. Package draft makes
// a plan; nothing changes it afterwards.
//
//	want ─┐
//	seen ─┼─ facts ─ demand ─ draft.Compute ─ Open? ─ answers ─ Compute ─► Plan ─► record.Intent … record.Settled
//	owned ┘
package plan

import (
	"cmp"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/lint"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Plan holds all decisions of a pass. The diff, the comment, the writes and the status all use this one value.
type Plan struct {
	Sync     inventory.Sync
	Want     render.Desired
	Steps    []Step             // in the order in which they are carried out
	Gone     []manifest.ID      // objects for the inventory to forget, because they do not exist any more or have another owner now
	Retained []string           // names of the definitions that are active but that the commit does not activate any more
	Notes    []manifest.Finding // findings from the cluster, in addition to those of the commit

	Instead   map[manifest.ID]Step // updates to make if the prunes of the same objects are not made
	Leftovers []Leftover           // objects with leftovers that should be removed but are not
	Owned     int                  // number of entries in the inventory that the plan was made from
	Version   string               // resourceVersion of that inventory
	Stance    Stance               // what the pass may do in its place
	Stale     bool                 // the inventory must be stored, even if no object is written
	Effects   []Effect             // the expected effects of Crossplane, or of another tool
	Bumps     []Bump               // in a comparison: packages whose images differ
	Held      inventory.Holds      // what the previous pass held
	Rulings   []Ruling             // in a comparison: on the commit as a whole
	Approval  *Approval            // the approval that would let the held steps pass; nil if no approval can

	Memory
	Approvals

	Unanswered  []question.Any                    // what guards ask; Open returns each question once
	Policies    PoliciesInForce                   // in force after the writes, but before the prunes
	WasActive   map[string]bool                   // definitions that Crossplane had active at first
	Dependants  map[manifest.ID][]manifest.ID     // dependants of objects that may be pruned
	Absent      []manifest.ID                     // the part of Gone that does not exist any more
	PrunesLater bool                              // a later round of the pass sends the prunes
	UndoneSince map[manifest.ID]metav1.Time       // since when earlier passes found creates and updates undone
	AskAgain    func(of *Plan) (approved Lifting) // returns which holds of a later state of the plan are approved
	Places      render.Homes                      // completes IDs with their namespaces in the cluster
}

// Findings returns the problems of the commit, including the kinds that it uses although they stay inactive.
func (p Plan) Findings() []manifest.Finding {
	return slices.Concat(p.Want.Findings, lint.Findings(p.Want, p.Retained...))
}

// Open returns the questions that guards still need answered, without duplicates. With the answers, call Compute again.
func (p Plan) Open() []question.Any { return question.Unique(p.Unanswered) }

// ByID returns the steps by object.
func (p Plan) ByID() map[manifest.ID]Step {
	steps := make(map[manifest.ID]Step, len(p.Steps))
	for _, s := range p.Steps {
		steps[s.ID] = s
	}
	return steps
}

// Writes reports whether carrying out the plan changes anything in the cluster.
func (p Plan) Writes() bool {
	return slices.ContainsFunc(p.Steps, Step.Writes)
}

// Waits reports whether an unchanged object still has to become ready.
func (p Plan) Waits() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Unready })
}

// Remembers reports whether the inventory must be stored although no object is written.
func (p Plan) Remembers() bool {
	if p.Stale || p.News || len(p.Gone) > 0 {
		return true
	}
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Renew.UID != "" })
}

// Count returns the number of steps with this action.
func (p Plan) Count(a Action) int {
	return len(p.Select(func(s Step) bool { return s.Action == a }).Steps)
}

// InOrder compares two steps by the order in which they are carried out.
func InOrder(a, b Step) int {
	return cmp.Or(
		cmp.Compare(a.Tier(), b.Tier()),
		a.ID.Compare(b.ID),
	)
}

// The rules of notes that the report of a pass keeps although its later plans do not have them.
const (
	RuleLeft    = "crd-left-alone"    // a CRD without an owner after a handover
	RuleRebuilt = "inventory-rebuilt" // the inventory is rebuilt
	RuleRestart = "restart-provider"  // a provider runs controllers of deactivated definitions
)
