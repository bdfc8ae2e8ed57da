package demand

import (
	"slices"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// A comparison of two commits shows what a pass changes in an object because of others: values that references copy, and the finalizer
// on the dependencies of an object that protects them. Without a cluster, only the objects of the commit count.

// mostLinks is the maximum number of references that hand a value on, from object to object, in a comparison.
const mostLinks = 5

// WithSources returns the observation with the objects of a commit as the sources of its references. What a commit does not declare
// stays unknown.
func WithSources(o facts.Observed, commit render.Desired) facts.Observed {
	ids := SourcesOf(o, commit)
	home := o.Homes()
	declared := map[manifest.ID]render.Object{}
	for _, of := range commit.Objects {
		if len(ids) > 0 {
			declared[home(of.ID)] = of
		}
	}
	secret := secretive(o, commit)
	for range mostLinks {
		sources := map[manifest.ID]facts.ReferenceSource{}
		for _, id := range ids {
			of, found := declared[home(id)]
			if !found {
				continue
			}
			r, err := resolve(o, of, secret)
			if err != nil {
				continue // Ask reports it
			}
			if content, err := r.Object.Content(); err == nil {
				manifest.EncodeStringData(content)
				sources[id] = facts.ReferenceSource{Live: content}
			}
		}
		o.Sources = sources
	}
	return o
}

// AsApplied returns the objects of the base of a comparison as a pass has applied them, and the observation that masks values of Secrets
// in them. If a pass would refuse the base, its objects are as in the commit.
func AsApplied(o facts.Observed, base render.Desired) (facts.Observed, []render.Object) {
	asks := func(of render.Object) bool { return hasReferences(of) || of.Asks[plan.ProtectAnnotation] != "" }
	if !slices.ContainsFunc(base.Objects, asks) {
		return o, base.Objects
	}
	was := o
	was.Want, was.Inventory.Entries = base, map[manifest.ID]inventory.Entry{}
	applied, err := Ask(WithSources(was, base), base)
	if err != nil {
		return o, base.Objects
	}
	o.Masks = map[manifest.ID]diff.Mask{}
	for _, a := range applied.Asked {
		o.Masks[a.ID] = a.Resolved.Hidden
	}
	return o, applied.Want.Objects
}
