package record

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// Begun returns the grants that the inventory recorded. If the inventory was lost, no existing approval counts until it is given
// again, not even one in the message of this commit. An approval on the command line of a later pass is new.
func Begun(p plan.Plan, have []inventory.Grant) []inventory.Grant {
	if !p.Rebuilt || slices.ContainsFunc(have, func(g inventory.Grant) bool { return g.Digest == inventory.AnyDigest }) {
		return have
	}
	lost := inventory.Grant{Digest: inventory.AnyDigest, Commit: p.Want.Revision, Given: true, On: []inventory.ApprovalPlace{inventory.InComment, inventory.InGit, inventory.InReview, inventory.OnRun, inventory.OnSync}}
	if _, read := p.Given[inventory.OnCommand]; read {
		lost.On = inventory.ApprovalPlaces
	}
	return append([]inventory.Grant{lost}, have...)
}

// Grants returns the grants to record: the earlier ones and those of this plan.
func Grants(p plan.Plan, have []inventory.Grant) []inventory.Grant {
	var next []inventory.Grant
	for _, g := range Begun(p, have) {
		if g.Digest == inventory.AnyDigest {
			next = append(next, p.Given.FirstRead(g)...)
		}
		g = p.Given.Standing(g).Aged(p.Now)
		if !isOf(p, g) && !approval.IsListed(g) {
			g.Left = nil
		}
		next = append(next, g)
	}
	for _, spent := range p.Spent {
		if !slices.ContainsFunc(next, func(g inventory.Grant) bool { return useOf(g) == useOf(spent) }) {
			next = append(next, spent)
		}
	}
	over := len(next) - inventory.MostGrants
	return slices.DeleteFunc(next, func(g inventory.Grant) bool {
		if over <= 0 || stands(p, g) {
			return false
		}
		over--
		return true
	})
}

// A use is one use of one approval, which is recorded once.
type use struct {
	digest, of, commit, on string
	given                  bool
}

func useOf(g inventory.Grant) use {
	return use{g.Digest, g.Of, g.Commit, fmt.Sprintf("%q", g.On), g.Given}
}

// stands reports whether the approval of a grant still stands, or is of this commit, so that it must stay recorded.
func stands(p plan.Plan, g inventory.Grant) bool { return g.Given || isOf(p, g) }

// isOf reports whether a grant is of the plan's commit.
func isOf(p plan.Plan, g inventory.Grant) bool { return g.Commit == p.Want.Revision }

// fulfilled returns the grants without the steps whose last phase was carried out. No guard may ask about those again.
func fulfilled(p plan.Plan, grants []inventory.Grant, done []plan.Outcome) []inventory.Grant {
	carried := completed(done)
	over := map[string]bool{} // changes
	for _, s := range p.Steps {
		if !carried[s.ID] || s.Deactivates && !s.ClosesKind() {
			continue
		}
		for _, action := range phasesOf(s) {
			over[approval.ChangeOf(s.ClaimAs("", "", action).Key())] = true
		}
	}
	for i, g := range grants {
		grants[i].Left = slices.DeleteFunc(slices.Clone(g.Left), func(left string) bool { return over[approval.ChangeOf(left)] })
	}
	return grants
}

// completed returns the objects whose steps were carried out with all their phases.
func completed(done []plan.Outcome) map[manifest.ID]bool {
	all := map[manifest.ID]bool{}
	for _, o := range done {
		all[o.ID] = o.IsOver()
	}
	return all
}

// phasesOf returns the actions on an object that a step completes. An approval may be for an action that came before: the create of
// an MRD that becomes active, or the update that freed an object so that it is created again.
func phasesOf(s plan.Step) []plan.Action {
	did := s.Change().Action
	switch {
	case s.Activates:
		return []plan.Action{did, plan.Create, plan.Update}
	case did == plan.Create:
		return []plan.Action{plan.Create, plan.Update}
	}
	return []plan.Action{did}
}
