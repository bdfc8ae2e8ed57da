package draft

import (
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
)

// unrecorded reports whether the inventory does not record yet that a CRD belongs to a definition.
func unrecorded(p plan.Plan, have inventory.Inventory) bool {
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
		e, owned := have.Entries[s.ID]
		isDefinition := s.Definition && s.DeclaresCRD()
		return owned && isDefinition && !e.Definition
	})
}
