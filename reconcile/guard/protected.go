package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protected holds deletions that Crossplane's Usages protect against: of an object that a Usage names, labelled or not, and of an
// object with the label, even if no Usage is found.
func protected(s plan.Step, c draft.Case) plan.Ruling {
	if goesFirst(s.ID, c) {
		return allowed
	}
	for _, o := range c.Want.Objects {
		if !crossplane.IsUsage(o.ID.GroupKind()) {
			continue
		}
		if u, err := o.Content(); err != nil || crossplane.UsageNames(u, s.ID, c.Live(s).GetLabels()) {
			return held(reason.UsageInCommit.With(o.ID))
		}
	}
	labelled := crossplane.IsInUse(c.Live(s))
	if !slices.ContainsFunc(crossplane.Usages, func(gk schema.GroupKind) bool { _, served := c.Seen.Kinds[gk]; return served }) {
		if labelled {
			return held(reason.LabelledInUse.With(crossplane.InUseLabel))
		}
		return allowed
	}
	a, is := question.Get(c.Seen.Known(), question.Protectors{Of: s.ID})
	switch {
	case is.Open, is.Unseen:
		return held(reason.UsagesNotRead.With())
	case is.Err != nil:
		return held(reason.UsagesUnknown.With(reason.Of(is.Err)))
	case a.Count > 0:
		return held(reason.ProtectedByUsage.With(a.Example))
	case labelled:
		r := held(reason.LabelWithoutUsage.With(crossplane.InUseLabel))
		r.Clears = plan.ClearsSoon
		return r
	}
	return allowed
}

// goesFirst reports whether the object is protected by one of our Usages that is pruned first. Then the prune only waits, and the
// user need not act.
func goesFirst(id manifest.ID, c draft.Case) bool {
	for usage := range c.Seen.Inventory.Entries {
		live, exists := c.Seen.Objects[usage]
		switch {
		case !exists, !crossplane.IsUsage(usage.GroupKind()), slices.ContainsFunc(c.Want.Objects, func(o render.Object) bool { return o.ID == usage }):
		case !inventory.Ours(live, c.Seen.Inventory.Sync), !c.Seen.Inventory.Holds(usage, live): // another sync's
		case slices.Contains(demand.LiveDependencies(c.Seen, usage, live), id):
			return true
		}
	}
	return false
}
