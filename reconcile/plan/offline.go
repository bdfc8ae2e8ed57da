package plan

import (
	"slices"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// A comparison of two commits shows what a pass changes in an object because of others: values that references copy, and the finalizer
// on the dependencies of an object that protects them. Without a cluster, only the objects of the commit count.

// mostLinks is the maximum number of references that hand a value on, from object to object, in a comparison.
const mostLinks = 5

// WithSources returns the observation with the objects of a commit as the sources of its references. What a commit does not declare
// stays unknown.
func (o Observed) WithSources(commit render.Desired) Observed {
	ids := o.SourcesOf(commit)
	home := o.Homes()
	declared := map[manifest.ID]render.Object{}
	for _, of := range commit.Objects {
		if len(ids) > 0 {
			declared[home(of.ID)] = of
		}
	}
	secret := o.secretive(commit)
	for range mostLinks {
		sources := map[manifest.ID]ReferenceSource{}
		for _, id := range ids {
			of, found := declared[home(id)]
			if !found {
				continue
			}
			r, err := o.resolve(of, secret)
			if err != nil {
				continue // Ask reports it
			}
			if content, err := r.object.Content(); err == nil {
				manifest.EncodeStringData(content)
				sources[id] = ReferenceSource{Live: content}
			}
		}
		o.Sources = sources
	}
	return o
}

// AsApplied returns the objects of the base of a comparison as a pass has applied them, and the observation that masks values of Secrets
// in them. If a pass would refuse the base, its objects are as in the commit.
func (o Observed) AsApplied(base render.Desired) (Observed, []render.Object) {
	asks := func(of render.Object) bool { return hasReferences(of) || of.Asks[ProtectAnnotation] != "" }
	if !slices.ContainsFunc(base.Objects, asks) {
		return o, base.Objects
	}
	was := o
	was.Want, was.Inventory.Entries = base, map[manifest.ID]inventory.Entry{}
	applied, err := was.WithSources(base).Ask(base)
	if err != nil {
		return o, base.Objects
	}
	o.masks = map[manifest.ID]diff.Mask{}
	for _, a := range applied.Asked {
		o.masks[a.ID] = a.resolved.hidden
	}
	return o, applied.Want.Objects
}
