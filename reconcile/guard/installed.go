package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
)

// installed retains an object of a package in the commit if a package revision controls it. The copy in the commit only serves as a
// catalogue.
func installed(s plan.Step, c draft.Case) plan.Ruling {
	live := c.Live(s)
	if live == nil || c.Asked[s.ID].Package == "" {
		return allowed
	}
	revision, is := crossplane.RevisionOf(live)
	if !is {
		return allowed
	}
	return retained(reason.InstalledByRevision.With(revision))
}

// onlyByCrossplane holds the objects that Crossplane itself writes to install a package. A package revision in a commit would
// install its image, and no guard or preview would have seen the definitions in it. The step of a deactivation comes from no
// commit: it touches an existing revision, so that Crossplane brings its definitions back inactive.
func onlyByCrossplane(s plan.Step, _ draft.Case) plan.Ruling {
	if crossplane.IsRevisionOrLock(s.ID) && !s.Deactivates {
		return held(reason.OnlyCrossplaneWrites.With(s.ID.Kind))
	}
	return allowed
}
