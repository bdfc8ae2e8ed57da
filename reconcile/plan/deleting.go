package plan

import (
	"slices"

	"headgate.dev/headgate/reconcile/reason"
)

// A deletion is over when the object is gone. Until then, the object stays in the inventory, and its step is a prune that sends
// nothing. Only the commit that removed the object can fail because of it, and only after the time limit.

// ofDeletions are the reasons of waits for deletions.
var ofDeletions = []reason.Code{reason.AwaitsDependant, reason.AwaitsGone, reason.AwaitsMore}

// Lingers reports whether a prune waits for deletions that have begun, of objects that an earlier commit removed. It changes no
// verdict, and a pass does not wait for it.
func (s Step) Lingers() bool {
	switch {
	case s.Action != Prune, !s.Earlier:
		return false
	case s.Deleting:
		return true
	}
	others := func(r reason.Reason) bool { return !slices.Contains(ofDeletions, r.Code) }
	return s.Waiting() && !slices.ContainsFunc(s.Waits, others)
}
