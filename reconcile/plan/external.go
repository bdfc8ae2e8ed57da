package plan

import (
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"
)

// InstanceCategories are the categories of the kinds whose objects stand for something outside of the cluster. Crossplane sets
// them.
var InstanceCategories = []string{"managed", "composite", "claim"}

// recordDefinitions records in the entries of next which CRDs belong to definitions. This record stays after the definition has
// left the commit, because the kind's objects are still managed resources. An inventory of an older version has no such records, so
// every CRD that the commit does not declare any more may belong to a definition.
func (p Plan) recordDefinitions(have, next inventory.Inventory) {
	declared := map[manifest.ID]bool{}
	for _, s := range p.Steps {
		if s.declaresCRD() {
			declared[s.ID] = s.Definition
		}
	}
	for id, e := range next.Entries {
		if !id.IsCRD() || e.Definition {
			continue
		}
		is, known := declared[id]
		e.Definition = is || have.Entries[id].Definition || !known && have.Record.Format == 0
		next.Entries[id] = e
	}
}

// unrecorded reports whether the inventory does not record yet that a CRD belongs to a definition.
func (p Plan) unrecorded(have inventory.Inventory) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		e, owned := have.Entries[s.ID]
		return owned && s.declaresCRD() && s.Definition && !e.Definition
	})
}

// declaresCRD reports whether the step is for a CRD that the commit declares.
func (s Step) declaresCRD() bool {
	return s.ID.IsCRD() && s.Action != Prune && s.Would != Prune && s.Action != Release
}
