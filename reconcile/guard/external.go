package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// The codes of the guard external.
const (
	DeletesExternal plan.Code = "DeletesExternal" // something outside of the cluster would be deleted, too
)

// external holds what exists outside of the cluster too: deleting the object deletes
// the bucket.
func external(permitted bool) func(plan.Step, plan.Case) plan.Ruling {
	return func(s plan.Step, c plan.Case) plan.Ruling {
		if permitted || s.OnlyFrees() || !isInstance(s.ID, c) && !isReconciled(s, c) {
			return allowed
		}
		return held(DeletesExternal.With())
	}
}

// isInstance reports whether an object is of a kind that reaches beyond the cluster: by the categories
// of the kind, or because a definition makes it. The definition may be in the commit, in the base of a
// comparison, in the inventory, where it is when it leaves the commit together with the object, or only
// in the cluster.
func isInstance(id manifest.ID, c plan.Case) bool {
	kind := c.Seen.Kinds[id.GroupKind()]
	if slices.ContainsFunc(kind.Categories, func(category string) bool { return slices.Contains(plan.InstanceCategories, category) }) {
		return true
	}
	if c.Seen.Instances[id.GroupKind()] {
		return true
	}
	name := kind.Resource + "." + id.Group
	if _, defined := c.Seen.Upstream.Definitions[name]; defined {
		return true
	}
	if slices.ContainsFunc(c.Want.Definitions, func(d render.DecidedDefinition) bool {
		return d.Name == name || d.Group == id.Group && d.Kind == id.Kind
	}) {
		return true
	}
	return defines(c.Seen.Inventory, name)
}

// defines reports whether the inventory holds what makes the kind of a CRD one that reaches beyond the
// cluster. A binary that recorded no format did not record which CRDs are of definitions either.
func defines(inv inventory.Inventory, name string) bool {
	crd, ours := inv.Entries[plan.CRD(name)]
	if ours && (crd.Definition || inv.Record.Format == 0) {
		return true
	}
	_, mrd := inv.Entries[crossplane.MRD(name)]
	_, xrd := inv.Entries[crossplane.XRD(name)]
	return mrd || xrd
}

// isReconciled reports whether a controller of Crossplane cleans up after the object of a step,
// whatever is known of its kind.
func isReconciled(s plan.Step, c plan.Case) bool {
	live := c.Live(s)
	return live != nil && crossplane.HasFinalizer(live)
}
