package plan

import (
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// LeftoverFields names the removal of leftovers in approvals, like a guard.
const LeftoverFields GuardName = "leftovers"

// A Leftover is an object whose leftovers a plan should remove but does not.
type Leftover struct {
	ID     manifest.ID
	Origin manifest.Origin // where the commit declares it

	Fields   int      // number of leftover fields
	Managers []string // the field managers of these fields
	Reason   reason.Reason
}
