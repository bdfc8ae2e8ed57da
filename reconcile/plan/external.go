package plan

import (
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// external holds what exists outside of the cluster too: deleting the object deletes
// the bucket.
func external(permitted bool) func(Step, Case) Ruling {
	return func(s Step, c Case) Ruling {
		if permitted || lettingGo(s, c) || !isInstance(s.ID, c) && !isReconciled(s, c) {
			return allowed
		}
		return held("deleting it would delete what it stands for outside of the cluster; set instances: Prune to allow that, or orphan it first")
	}
}

// instanceCategories are what Crossplane puts on the kinds whose deletion reaches
// beyond the cluster.
var instanceCategories = []string{"managed", "composite", "claim"}

// isInstance reports whether an object is of a kind that reaches beyond the cluster: by the categories
// of the kind, or because a definition makes it. The definition may be in the commit, in the base of a
// comparison, in the inventory, where it is when it leaves the commit together with the object, or only
// in the cluster.
func isInstance(id manifest.ID, c Case) bool {
	kind := c.Seen.Kinds[id.GroupKind()]
	if slices.ContainsFunc(kind.Categories, func(category string) bool { return slices.Contains(instanceCategories, category) }) {
		return true
	}
	if c.Seen.Instances[id.GroupKind()] {
		return true
	}
	name := kind.Resource + "." + id.Group
	if _, defined := c.Seen.Upstream.Definitions[name]; defined {
		return true
	}
	if slices.ContainsFunc(c.Want.Definitions, func(d render.Definition) bool { return d.Name == name || d.Group == id.Group && d.Kind == id.Kind }) {
		return true
	}
	return defines(c.Seen.Inventory, name)
}

// defines reports whether the inventory holds what makes the kind of a CRD one that reaches beyond the
// cluster. A binary that recorded no format did not record which CRDs are of definitions either.
func defines(inv Inventory, name string) bool {
	crd, ours := inv.Entries[CRD(name)]
	if ours && (crd.Definition || inv.Record.Format == 0) {
		return true
	}
	_, mrd := inv.Entries[MRD(name)]
	_, xrd := inv.Entries[XRD(name)]
	return mrd || xrd
}

// recordDefinitions records in the entries of next which CRDs are of definitions. What was recorded of
// one stays: its objects are what they were when the definition has left the commit. Of what a binary
// wrote that recorded nothing, each CRD that the commit does not declare any more may be of one.
func (p Plan) recordDefinitions(have, next Inventory) {
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

// unrecorded reports whether the inventory does not record yet that a CRD is of a definition.
func (p Plan) unrecorded(have Inventory) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		e, owned := have.Entries[s.ID]
		return owned && s.declaresCRD() && s.Definition && !e.Definition
	})
}

// declaresCRD reports whether the step is on a CRD that the commit declares.
func (s Step) declaresCRD() bool {
	return s.ID.IsCRD() && s.Action != Prune && s.Would != Prune && s.Action != Release
}

// instanceFinalizers are set by Crossplane and its providers on what they clean up after.
var instanceFinalizers = []string{
	"finalizer.managedresource.crossplane.io", // a managed resource
	"composite.apiextensions.crossplane.io",   // an XR
	"finalizer.apiextensions.crossplane.io",   // a claim
}

// isReconciled reports whether a controller of Crossplane cleans up after the object of a step,
// whatever is known of its kind.
func isReconciled(s Step, c Case) bool {
	live := c.Live(s)
	return live != nil && slices.ContainsFunc(live.GetFinalizers(), func(f string) bool { return slices.Contains(instanceFinalizers, f) })
}
