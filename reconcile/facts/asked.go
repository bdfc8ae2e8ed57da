package facts

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
)

// An Asked is one object that a pass wants in the cluster: an object of the commit, or a definition that stays active although the
// commit does not activate it any more.
type Asked struct {
	render.Object
	Because  []activation.Activator     // of a definition's CRD: why the definition is active
	Retained reason.Reason              // why it is wanted although the commit does not activate it; no reason if the commit does
	Paused   bool                       // leave it unchanged
	Policy   inventory.ManagementPolicy // which actions are allowed

	Resolved Resolved // the results of its references
}
