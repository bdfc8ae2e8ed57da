package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
)

// paused leaves a paused object unchanged, because users pause objects that they are working on.
func paused(s plan.Step, c draft.Case) plan.Ruling {
	live := c.Live(s)
	switch {
	case live == nil || live.GetAnnotations()[crossplane.PausedAnnotation] != "true" || ownership.SentByUs(live, c.Seen.Inventory.Entries[s.ID].Foreign, true, crossplane.PausedAnnotation):
		return allowed
	case s.Action == plan.Prune:
		return held(reason.PausedPrune.With(crossplane.PausedAnnotation))
	}
	return retained(reason.PausedUpdate.With(crossplane.PausedAnnotation))
}
