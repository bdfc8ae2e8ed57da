package record

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
)

// Recorded returns the record of the source to store after the plan was carried out.
func Recorded(p plan.Plan, was inventory.SourceRecord) inventory.SourceRecord {
	from := p.Want.Source
	if from.Repository == "" {
		return was
	}
	next := was
	next.Repository, next.Path = from.Repository, from.Path
	if p.TakesOver {
		next.Taken++
	}
	if p.TakesOver || p.Object != "" {
		next.Object = p.Object
	}
	if p.TakesOver || was.Ref == "" || from.Ref != render.Detached { // otherwise, the record keeps its branch
		next.Ref, next.Branch = from.Ref, from.Branch
	}
	if p.Rewritten { // otherwise, later commits on top of this one would also be accepted
		return next
	}
	if from.Commit != "" || was.Repository != from.Repository {
		next.Commit = from.Commit
	}
	return next
}
