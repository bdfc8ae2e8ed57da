package plan

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// RuleRebuilt is the rule of the warning that an inventory is rebuilt.
const RuleRebuilt = "inventory-rebuilt"

// noteRebuilt returns a warning if the inventory is rebuilt from marks.
func (o Observed) noteRebuilt() []manifest.Finding {
	if !o.Inventory.Rebuilt {
		return nil
	}
	return []manifest.Finding{{
		Rule: RuleRebuilt, Severity: manifest.Warning,
		Message: fmt.Sprintf("the inventory of %s was lost or changed by another client; Headgate rebuilds it from the marks on objects, now with %s, and prunes nothing in this pass", o.Inventory.Sync, manifest.Count(len(o.Inventory.Entries), "object")),
		Fix:     "look at the prunes that are held afterwards: approve them, or run 'headgate release --rebuilt'",
	}}
}

// isLost reports whether a sync has applied objects but the inventory with its grants is gone. A pass stores the inventory before
// it applies anything.
func (o Observed) isLost() bool {
	if !o.Stance.In(Writing) || o.Inventory.ResourceVersion != "" {
		return false
	}
	if o.Inventory.Rebuilt || len(o.Copies) > 0 {
		return true
	}
	for _, live := range o.Objects {
		if inventory.Ours(live, o.Inventory.Sync) {
			return true
		}
	}
	return false
}

// begun returns the grants that the inventory recorded. If the inventory was lost, no existing approval counts until it is given
// again, not even one in the message of this commit. An approval on the command line of a later pass is new.
func (p Plan) begun(have []inventory.Grant) []inventory.Grant {
	if !p.Rebuilt || slices.ContainsFunc(have, func(g inventory.Grant) bool { return g.Digest == inventory.AnyDigest }) {
		return have
	}
	lost := inventory.Grant{Digest: inventory.AnyDigest, Commit: p.Want.Revision, Given: true, On: []inventory.ApprovalPlace{inventory.InComment, inventory.InGit, inventory.InReview, inventory.OnRun, inventory.OnSync}}
	if _, read := p.Given[inventory.OnCommand]; read {
		lost.On = inventory.ApprovalPlaces
	}
	return append([]inventory.Grant{lost}, have...)
}

// grants returns the grants to record: the earlier ones and those of this plan.
func (p Plan) grants(have []inventory.Grant) []inventory.Grant {
	var next []inventory.Grant
	for _, g := range p.begun(have) {
		if g.Digest == inventory.AnyDigest {
			next = append(next, p.Given.FirstRead(g)...)
		}
		g = p.Given.Standing(g).Aged(p.Now)
		if g.Commit != p.Want.Revision && !slices.ContainsFunc(g.On, func(place inventory.ApprovalPlace) bool { return slices.Contains(approval.Listing, place) }) {
			g.Left = nil
		}
		next = append(next, g)
	}
	for _, spent := range p.Spent {
		if !slices.ContainsFunc(next, func(g inventory.Grant) bool {
			return g.Digest == spent.Digest && g.Of == spent.Of && g.Commit == spent.Commit && g.Given == spent.Given && slices.Equal(g.On, spent.On)
		}) {
			next = append(next, spent)
		}
	}
	over := len(next) - inventory.MostGrants
	return slices.DeleteFunc(next, func(g inventory.Grant) bool {
		if over <= 0 || p.stands(g) {
			return false
		}
		over--
		return true
	})
}

// stands reports whether the approval of a grant still stands, or is of this commit, so that it must stay recorded.
func (p Plan) stands(g inventory.Grant) bool { return g.Given || g.Commit == p.Want.Revision }

// forgets reports whether the record lists places where a used approval no longer stands. Once it was removed everywhere, it may be
// given again.
func (p Plan) forgets(have []inventory.Grant) bool {
	return slices.ContainsFunc(have, func(g inventory.Grant) bool { return g.Given && !slices.Equal(g.On, p.Given.Standing(g).On) })
}

// fulfilled returns the grants without the steps whose last phase was carried out. No guard may ask about those again.
func (p Plan) fulfilled(grants []inventory.Grant, done []Outcome) []inventory.Grant {
	carried := map[manifest.ID]bool{}
	for _, o := range done {
		carried[o.ID] = o.Err == nil && !o.More
	}
	over := map[string]bool{} // changes
	finish := func(s Step) { over[approval.ChangeOf(s.claim("", "").Key())] = true }
	for _, s := range p.Steps {
		if !carried[s.ID] || s.Deactivates && crossplane.IsMRD(s.ID) {
			continue
		}
		finish(s)
		if s.Activates { // the approval may be for the preceding create
			s.Action = Create
			finish(s)
		}
		if s.Action == Create { // the approval may be for the preceding update that freed the object
			s.Action = Update
			finish(s)
		}
	}
	for i, g := range grants {
		grants[i].Left = slices.DeleteFunc(slices.Clone(g.Left), func(left string) bool { return over[approval.ChangeOf(left)] })
	}
	return grants
}
