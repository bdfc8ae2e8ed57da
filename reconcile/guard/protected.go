package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The codes of the guard protected.
const (
	UsageInCommit     plan.Code = "UsageInCommit"     // the Usage of the commit
	LabelledInUse     plan.Code = "LabelledInUse"     // the label that Usages set, which it carries
	UsagesNotRead     plan.Code = "UsagesNotRead"     // Usages have not been read yet
	UsagesUnknown     plan.Code = "UsagesUnknown"     // why Usages cannot be read
	ProtectedByUsage  plan.Code = "ProtectedByUsage"  // a Usage that names it
	LabelWithoutUsage plan.Code = "LabelWithoutUsage" // the label that Usages set, which it carries although no Usage names it
)

// protected holds deletions that Crossplane's Usages protect against: of an object that a Usage names, labelled or not, and of an
// object with the label, even if no Usage is found.
func protected(s plan.Step, c plan.Case) plan.Ruling {
	if goesFirst(s.ID, c) {
		return allowed
	}
	for _, o := range c.Want.Objects {
		if !crossplane.IsUsage(o.ID.GroupKind()) {
			continue
		}
		if u, err := o.Content(); err != nil || crossplane.UsageNames(u, s.ID, c.Live(s).GetLabels()) {
			return held(UsageInCommit.With(o.ID))
		}
	}
	labelled := crossplane.IsInUse(c.Live(s))
	if !slices.ContainsFunc(crossplane.Usages, func(gk schema.GroupKind) bool { _, served := c.Seen.Kinds[gk]; return served }) {
		if labelled {
			return held(LabelledInUse.With(crossplane.InUseLabel))
		}
		return allowed
	}
	a, is := question.Get(c.Seen.Known(), question.Protectors{Of: s.ID})
	switch {
	case is.Open:
		return held(UsagesNotRead.With())
	case is.Err != nil:
		return held(UsagesUnknown.With(plan.ReasonOf(is.Err)))
	case a.Count > 0:
		return held(ProtectedByUsage.With(a.Example))
	case labelled:
		r := held(LabelWithoutUsage.With(crossplane.InUseLabel))
		r.Clears = plan.ClearsSoon
		return r
	}
	return allowed
}

// goesFirst reports whether the object is protected by one of our Usages that is pruned first. Then the prune only waits, and the
// user need not act.
func goesFirst(id manifest.ID, c plan.Case) bool {
	for usage := range c.Seen.Inventory.Entries {
		live, exists := c.Seen.Objects[usage]
		if exists && crossplane.IsUsage(usage.GroupKind()) && inventory.Ours(live, c.Seen.Inventory.Sync) && c.Seen.Inventory.Holds(usage, live) && slices.Contains(c.Seen.LiveDependencies(usage, live), id) &&
			!slices.ContainsFunc(c.Want.Objects, func(o render.Object) bool { return o.ID == usage }) {
			return true
		}
	}
	return false
}
