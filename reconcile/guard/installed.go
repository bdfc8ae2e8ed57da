package guard

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
)

// The codes of the guard installed.
const (
	InstalledByRevision plan.Code = "InstalledByRevision" // the name of the package revision
)

// installed retains an object that comes with a package of the commit if a package revision controls it: the commit's
// copy is a catalogue, and no more.
func installed(s plan.Step, c plan.Case) plan.Ruling {
	live := c.Live(s)
	if live == nil || !s.Packaged {
		return allowed
	}
	revision, is := crossplane.RevisionOf(live)
	if !is {
		return allowed
	}
	return retained(InstalledByRevision.With(revision))
}
