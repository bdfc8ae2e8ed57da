package guard

import (
	"headgate.dev/headgate/reconcile/plan"
)

// packageLost holds what comes of a package that is none any more: its CRDs and its examples as plain
// objects, and prunes of what only a package has.
func packageLost(s plan.Step, c plan.Case) plan.Ruling {
	for _, p := range c.Lost {
		switch {
		case !p.Concerns(s, c.Seen.Inventory.Entries[s.ID]):
		case p.Remains:
			return held("the package in %s declared it as a definition in the last applied commit, and it is a plain CRD now, which is made whatever policies name; move it back, or list it in .headgateignore", p.Directory)
		default:
			return held("the directory %s was a package in the last applied commit and is not one now, so this would follow; put its crossplane.yaml back, declare it in packages, list it in .headgateignore, or delete it", p.Directory)
		}
	}
	return allowed
}
