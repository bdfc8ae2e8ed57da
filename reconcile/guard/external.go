package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// external holds prunes that delete something outside of the cluster, such as a bucket.
func external(permitted bool) func(plan.Step, draft.Case) plan.Ruling {
	return func(s plan.Step, c draft.Case) plan.Ruling {
		deletes := isInstance(s.ID, c) || isReconciled(s, c)
		if permitted || s.OnlyFrees() || !deletes {
			return allowed
		}
		return held(reason.DeletesExternal.With())
	}
}

// isInstance reports whether an object stands for something outside of the cluster, either according to the categories of its kind,
// or because a definition makes the kind. The definition may be in the commit, in the base of a comparison or only in the cluster.
// If it is removed together with the object, it is still in the inventory.
func isInstance(id manifest.ID, c draft.Case) bool {
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

// defines reports whether the inventory holds a definition that makes the kind of this CRD. A binary that recorded no format did
// not record which CRDs have definitions, so all of them count.
func defines(inv inventory.Inventory, name string) bool {
	crd, ours := inv.Entries[plan.CRD(name)]
	if ours && (crd.Definition || inv.Record.Format == 0) {
		return true
	}
	_, mrd := inv.Entries[crossplane.MRD(name)]
	_, xrd := inv.Entries[crossplane.XRD(name)]
	return mrd || xrd
}

// isReconciled reports whether a controller of Crossplane has a finalizer on the step's object, whatever its kind is.
func isReconciled(s plan.Step, c draft.Case) bool {
	live := c.Live(s)
	return live != nil && crossplane.HasFinalizer(live)
}
