package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
)

// The codes of the guard paused.
const (
	PausedPrune  reason.Code = "PausedPrune"  // the annotation that pauses it
	PausedUpdate reason.Code = "PausedUpdate" // the annotation that pauses it
)

// paused leaves a paused object unchanged, because users pause objects that they are working on.
func paused(s plan.Step, c draft.Case) plan.Ruling {
	live := c.Live(s)
	switch {
	case live == nil || live.GetAnnotations()[crossplane.PausedAnnotation] != "true" || ownership.SentByUs(live, c.Seen.Inventory.Entries[s.ID].Foreign, true, crossplane.PausedAnnotation):
		return allowed
	case s.Action == plan.Prune:
		return held(PausedPrune.With(crossplane.PausedAnnotation))
	}
	return retained(PausedUpdate.With(crossplane.PausedAnnotation))
}
