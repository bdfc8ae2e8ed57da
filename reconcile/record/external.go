package record

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// recordDefinitions records in the entries of next which CRDs belong to definitions. This record stays after the definition has
// left the commit, because the kind's objects are still managed resources. An inventory of an older version has no such records, so
// every CRD that the commit does not declare any more may belong to a definition.
func recordDefinitions(p plan.Plan, have, next inventory.Inventory) {
	declared := map[manifest.ID]bool{}
	for _, s := range p.Steps {
		if s.DeclaresCRD() {
			declared[s.ID] = s.Definition
		}
	}
	for id, e := range next.Entries {
		if !id.IsCRD() || e.Definition {
			continue
		}
		is, known := declared[id]
		if !known {
			is = have.Record.Format == 0
		}
		e.Definition = is || have.Entries[id].Definition
		next.Entries[id] = e
	}
}
