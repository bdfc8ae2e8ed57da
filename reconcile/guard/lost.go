package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// The codes of the guard package lost.
const (
	DefinitionLost      reason.Code = "DefinitionLost"      // the directory of the package that declared the definition
	DirectoryNotPackage reason.Code = "DirectoryNotPackage" // the directory that was a package
)

// packageLost holds the consequences of a directory that is no longer a package: its CRDs and examples as plain objects, and prunes
// of the objects that only a package has.
func packageLost(s plan.Step, c draft.Case) plan.Ruling {
	for _, p := range c.Lost {
		switch {
		case !p.Concerns(s, c.Seen.Inventory.Entries[s.ID]):
		case p.Remains:
			return held(DefinitionLost.With(p.Directory))
		default:
			return held(DirectoryNotPackage.With(p.Directory))
		}
	}
	return allowed
}
