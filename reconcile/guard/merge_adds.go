package guard

import (
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/impact"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// adds asks to look at new objects that affect more than themselves: everything but a few kinds, and the resources of definitions.
func adds(c draft.Case) func(plan.Step) plan.Ruling {
	declared := declaredKinds(c.Want)
	return func(s plan.Step) plan.Ruling {
		id := s.ID
		switch {
		case s.Action != plan.Create || s.Err != nil, impact.IsInert(id):
			return allowed
		case crossplane.IsPackage(id), crossplane.IsComposition(id): // the guards trust and composes rule
			return allowed
		case !declared[id.GroupKind()] || impact.IsSystem(id.Namespace):
			return looks(reason.AddsObject.With(id))
		}
		switch impact.PowerOf(id.GroupKind()) {
		case impact.Runs:
			return looks(reason.AddsRunner.With(id))
		case impact.Entitles:
			return looks(reason.AddsRights.With(id))
		}
		return allowed
	}
}

// declaredKinds returns the kinds of the managed and the composite resources that a commit declares, including claims.
func declaredKinds(want render.Desired) map[schema.GroupKind]bool {
	all := map[schema.GroupKind]bool{}
	for _, d := range want.Definitions {
		all[schema.GroupKind{Group: d.Group, Kind: d.Kind}] = true
	}
	add := func(o render.Object) {
		for _, kind := range kindsOf(o) {
			all[kind] = true
		}
	}
	for _, o := range want.Objects {
		if crossplane.IsXRD(o.ID) {
			add(o)
		}
	}
	for _, l := range want.Left {
		if crossplane.IsXRD(l.ID) {
			if o, err := l.Object(); err == nil {
				add(o)
			}
		}
	}
	return all
}

// kindsOf returns the kinds that an XRD declares.
func kindsOf(xrd render.Object) []schema.GroupKind {
	content, err := xrd.Content()
	if err != nil {
		return nil
	}
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(content.Object, path...)
		return s
	}
	group := text("spec", "group")
	return []schema.GroupKind{{Group: group, Kind: text("spec", "names", "kind")}, {Group: group, Kind: text("spec", "claimNames", "kind")}}
}

// keys asks to look at labels and annotations that a tool reads.
func keys(s plan.Step, _ draft.Case) plan.Ruling {
	before, after, changes := contents(s)
	if !changes || s.Err != nil {
		return allowed
	}
	if before == nil {
		is := marksOf(after)
		for _, k := range slices.SortedFunc(maps.Keys(is), mark.compare) {
			if k.key == inventory.SyncLabel || k.key == inventory.InventoryAnnotation { // Headgate adds these
				continue
			}
			if tool := impact.NewReader(k.key, is[k]); tool != "" {
				return looks(reason.HasKey.With(s.ID, k.key, tool))
			}
		}
		return allowed
	}
	for _, k := range changedMarks(before, after) {
		if tool := impact.Reader(k.key); tool != "" && tool != "Headgate" { // the guard asked rules on ours
			return looks(reason.ChangesKey.With(s.ID, k.key, tool))
		}
	}
	return allowed
}

// asksOtherwise asks to look at settings of Headgate on an object. They may leave the object without a step.
func asksOtherwise(c draft.Case) []plan.Ruling {
	before := map[manifest.ID]render.Object{}
	for _, o := range baseOf(c).Objects {
		before[o.ID] = o
	}
	var all []plan.Ruling
	for _, o := range c.Want.Objects {
		if was, existed := before[o.ID]; existed {
			for _, key := range changedAsks(was.Asks, o.Asks) {
				r := looks(reason.ChangesAsking.With(o.ID, key))
				r.Of, r.At = o.ID, []manifest.Origin{o.Origin}
				all = append(all, r)
			}
		}
	}
	return all
}

// changedAsks returns the settings of Headgate that differ.
func changedAsks(before, after map[string]string) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(union(before, after))) {
		if impact.Reader(key) == "Headgate" && before[key] != after[key] {
			all = append(all, key)
		}
	}
	return all
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return all
}

// skips asks to look at objects that Headgate skips, and that the author may have expected it to apply.
func skips(c draft.Case) []plan.Ruling {
	base := baseOf(c)
	applied, skipped := map[manifest.ID]bool{}, map[manifest.ID]bool{}
	for _, o := range base.Objects {
		applied[o.ID] = true
	}
	for _, o := range base.Omitted {
		skipped[o.ID] = true
	}
	still := map[manifest.ID]bool{}
	for _, o := range c.Want.Objects {
		still[o.ID] = true
	}
	var all []plan.Ruling
	for _, o := range c.Want.Omitted {
		r := looks(reason.SkipsObject.With(o.ID, string(o.Why)))
		switch {
		case o.ID == (manifest.ID{}), skipped[o.ID], still[o.ID]:
			continue
		case applied[o.ID]:
			r = looks(reason.SkipsFromNow.With(o.ID, string(o.Why)))
		case !o.Why.Surprises():
			continue
		}
		r.Of, r.At = o.ID, []manifest.Origin{o.Origin}
		all = append(all, r)
	}
	return all
}
