package guard

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
)

// The codes of the guard installed.
const (
	InstalledByRevision  plan.Code = "InstalledByRevision"  // the name of the package revision
	OnlyCrossplaneWrites plan.Code = "OnlyCrossplaneWrites" // the kind of the object
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

// onlyByCrossplane holds what Crossplane writes to install a package. A revision that a commit brings would install its image, and no
// guard and no preview would have seen which definitions that image has. The step of a deactivation comes from no commit: it touches a
// revision that is there, so that Crossplane brings its definitions back inactive.
func onlyByCrossplane(s plan.Step, _ plan.Case) plan.Ruling {
	if crossplane.IsRevisionOrLock(s.ID) && !s.Deactivates {
		return held(OnlyCrossplaneWrites.With(s.ID.Kind))
	}
	return allowed
}
