package draft

import (
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// outOfReach returns the step for an owned object that cannot be read. The step fails, and the object stays in the inventory.
func (p *drafted) outOfReach(id manifest.ID, seen facts.Ground) plan.Step {
	return plan.Step{Action: p.parts, Cause: plan.Commit, ID: id, Digest: seen.Inventory.Entries[id].Digest, Err: seen.Hides(id)}
}
