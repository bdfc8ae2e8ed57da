package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/schema"
)

// The codes of the guard impossible.
const (
	ScopeChanges         plan.Code = "ScopeChanges"         // the scope as it is, as it would be, and the kind of the definition
	NameChanges          plan.Code = "NameChanges"          // the field of the name, the name as it is, as it would be, and the kind of the definition
	StoredVersionLeaves  plan.Code = "StoredVersionLeaves"  // versions that are not declared any more, the CRD whose status names them, and the storage version
	StorageVersionLeaves plan.Code = "StorageVersionLeaves" // the same, if the storage version so far is one of them
	RulesRefused         plan.Code = "RulesRefused"         // the place of a rule in CEL that the API server refuses, and what is wrong
)

// impossible holds an update of a definition that no approval helps, because an API server refuses it: another scope, a name that
// cannot change, a version that leaves although objects may be stored in it, or a rule in CEL that does not compile. This covers the updates that Crossplane makes when a package is updated.
func impossible(s plan.Step, c plan.Case) plan.Ruling {
	if s.Action != plan.Update || s.Live == nil || !crossplane.DeclaresKind(s.ID) {
		return allowed
	}
	for _, b := range s.Schema().Breaking() {
		switch {
		case b.Rule == schema.Scope && !neverServed(s.Live):
			return held(ScopeChanges.With(b.From, b.To, s.ID.Kind))
		case b.Rule == schema.Names && !(neverServed(s.Live) && b.Path == "names.kind"):
			return held(NameChanges.With(b.Path, b.From, b.To, s.ID.Kind))
		case b.Rule == schema.Refused && c.Seen.Offline: // in a pass, the dry run decides
			return held(RulesRefused.With(b.Where(), b.What()))
		}
	}
	after, err := s.WillBe()
	if err != nil {
		return allowed // Err holds the reason
	}
	have, needs, _ := storedVersions(s, c, after)
	if len(needs) > 0 {
		return plan.Ruling{Needs: needs} // until they are answered guard schema holds it, which may be approved
	}
	for _, crd := range have {
		declared, to := versionsOf(after)
		gone := slices.DeleteFunc(slices.Clone(crd.versions), func(v string) bool { return slices.Contains(declared, v) })
		if len(gone) > 0 {
			leaves := StoredVersionLeaves
			if _, from := versionsOf(s.Live); slices.Contains(gone, from) { // else objects would be written back in the same version
				leaves = StorageVersionLeaves
			}
			return held(leaves.With(gone, crd.name, to))
		}
	}
	return allowed
}
