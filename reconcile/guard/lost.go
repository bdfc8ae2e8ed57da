package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// packageLost holds the consequences of a directory that is no longer a package: its CRDs and examples as plain objects, and prunes
// of the objects that only a package has.
func packageLost(s plan.Step, c draft.Case) plan.Ruling {
	for _, p := range c.Lost {
		switch {
		case !p.Concerns(s, c.Seen.Inventory.Entries[s.ID]):
		case p.Remains:
			return held(reason.DefinitionLost.With(p.Directory))
		default:
			return held(reason.DirectoryNotPackage.With(p.Directory))
		}
	}
	return allowed
}
