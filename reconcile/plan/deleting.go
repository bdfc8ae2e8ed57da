package plan

import (
	"slices"

	"headgate.dev/headgate/reconcile/reason"
)

// A deletion is over when the object is gone. Until then, the object stays in the inventory, and its step is a prune that sends
// nothing. Only the commit that removed the object can fail because of it, and only after the time limit.

// Lingers reports whether a prune waits for deletions that have begun, of objects that an earlier commit removed. It changes no
// verdict, and a pass does not wait for it.
func (s Step) Lingers() bool {
	return s.Action == Prune && s.Earlier && (s.Deleting || s.Waiting() && !slices.ContainsFunc(s.Waits, func(r reason.Reason) bool {
		return r.Code != reason.AwaitsDependant && r.Code != reason.AwaitsGone && r.Code != reason.AwaitsMore
	}))
}
