package plan

import (
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
)

// Granted returns the approvals that this plan, or an earlier one over the same commit, has used.
func (p Plan) Granted() []inventory.Grant {
	return slices.DeleteFunc(slices.Concat(p.GrantedBefore, p.Spent), func(g inventory.Grant) bool { return g.Commit != p.Want.Revision || len(g.How) == 0 })
}
