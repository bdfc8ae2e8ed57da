package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// empty holds every prune of a commit that looks like a mistake: a wrong path, an
// emptied branch, a generator that failed.
func empty(_ plan.Step, c draft.Case) plan.Ruling {
	some := declares(c, func(render.DecidedDefinition) bool { return true })
	if len(c.Want.Objects) == 0 && !some {
		return held(reason.NothingWanted.With())
	}
	wantsCRD := slices.ContainsFunc(c.Want.Objects, func(o render.Object) bool { return o.ID.IsCRD() })
	if !some && !wantsCRD && owns(c, manifest.ID.IsCRD) {
		return held(reason.NoDefinitions.With())
	}
	// Crossplane installs the definitions of a package in a registry, so we own none of them.
	if !declares(c, func(d render.DecidedDefinition) bool { return !d.Package.Pulled() }) && owns(c, crossplane.IsMRD) {
		return held(reason.NoOwnDefinitions.With())
	}
	return allowed
}

// declares reports whether the commit declares a definition that like accepts. Definitions that are only in the cluster do not
// count.
func declares(c draft.Case, like func(render.DecidedDefinition) bool) bool {
	return slices.ContainsFunc(c.Want.Definitions, func(d render.DecidedDefinition) bool { return (!c.Want.Live || d.Document != nil) && like(d) })
}

// owns reports whether the inventory holds an object that like accepts.
func owns(c draft.Case, like func(manifest.ID) bool) bool {
	for id := range c.Seen.Inventory.Entries {
		if like(id) {
			return true
		}
	}
	return false
}
