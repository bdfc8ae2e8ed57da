package draft

import (
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// outOfReach returns the step for an owned object that cannot be read. The step fails, and the object stays in the inventory.
func (p *drafted) outOfReach(id manifest.ID, seen facts.Ground) plan.Step {
	s := plan.Step{Action: plan.Prune, Cause: plan.Commit, ID: id, Digest: seen.Inventory.Entries[id].Digest, Err: seen.Hides(id)}
	if p.Stance == plan.Orphaning {
		s.Action = plan.Release
	}
	return s
}
