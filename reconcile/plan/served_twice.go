package plan

import (
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// An API server can serve one object under two identities: an Event in "" and in events.k8s.io, or a Project and a Namespace of
// OpenShift. If a commit changes from one identity to the other, a prune of the old one would delete the wanted object.

// SameObject is the guard that keeps objects which the commit wants under another identity.
const SameObject GuardName = "same object"

// KeptAs returns the step that keeps an object because the commit wants it under another identity.
func (s Step) KeptAs(wanted manifest.ID) Step {
	s.Action, s.Would, s.Cause, s.Guard, s.Reason = Keep, Prune, Retain, SameObject, reason.ServedTwice.With(wanted)
	s.SameAs = wanted
	return s.Free()
}
