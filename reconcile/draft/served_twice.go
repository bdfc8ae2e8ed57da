package draft

import (
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/types"
)

// wantedUIDs returns the UIDs of the live objects that the commit wants.
func wantedUIDs(seen facts.Observed) map[types.UID]manifest.ID {
	uids := map[types.UID]manifest.ID{}
	for _, a := range seen.Asked {
		if uid := uidOf(seen.Live, a.ID); uid != "" {
			uids[uid] = a.ID
		}
	}
	return uids
}

// uidOf returns the UID of a live object; "" if it does not exist.
func uidOf(o facts.Live, id manifest.ID) types.UID {
	live, exists := o.Objects[id]
	if !exists {
		return ""
	}
	return live.GetUID()
}

// KeptAs returns the step that keeps an object because the commit wants it under another identity.
func KeptAs(s plan.Step, wanted manifest.ID) plan.Step {
	s.Action, s.Would, s.Cause, s.Guard, s.Reason = plan.Keep, plan.Prune, plan.Retain, plan.SameObject, reason.ServedTwice.With(wanted)
	s.SameAs = wanted
	return s.Free()
}
