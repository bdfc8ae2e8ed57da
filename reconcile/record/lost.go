package record

import (
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// applying returns the record to store before the first write. It does not forget anything yet.
func applying(p plan.Plan, have inventory.Record) inventory.Record {
	if p.Record == nil {
		return have
	}
	next := withoutPackages(have, *p.Record)
	for _, of := range []inventory.Record{have, *p.Record} {
		for dir := range of.Directories() {
			next.Take(dir, of)
		}
	}
	return next.Bounded()
}

// appliedRecord returns the record to store after the last write. A package whose loss was approved is forgotten after all of its
// steps were carried out.
func appliedRecord(p plan.Plan, have inventory.Inventory, done []plan.Outcome) inventory.Record {
	if p.Record == nil {
		return have.Record
	}
	next, carried := withoutPackages(have.Record, *p.Record), completed(done)
	for dir := range p.Record.Directories() {
		names := inventory.ReadFingerprints(p.Record.Definitions[dir])
		l, made, isOver := carriedLoss(p, dir, carried, have)
		switch {
		case !isOver:
			next.Take(dir, *p.Record)
		case l.Remains:
			next.AddPackage(dir, names.Without(made))
		default:
			next.NoteDefinitions(dir, names.Without(made).Without(p.Known))
		}
	}
	return next.Bounded()
}

// withoutPackages returns a record without packages, with the terms of the next one.
func withoutPackages(have, next inventory.Record) inventory.Record {
	have.Packages, have.Definitions = nil, nil
	have.Adoption, have.Ignored = next.Adoption, next.Ignored
	return have
}

// carriedLoss returns the lost package of a directory, the names of what followed from its loss and was carried out, and whether that
// is everything.
func carriedLoss(p plan.Plan, dir string, carried map[manifest.ID]bool, have inventory.Inventory) (l plan.LostPackage, made map[string]bool, isOver bool) {
	i := slices.IndexFunc(p.Lost, func(l plan.LostPackage) bool { return l.Directory == dir })
	if i < 0 {
		return l, nil, false
	}
	l, made = p.Lost[i], map[string]bool{}
	follows := 0
	for _, s := range p.Steps {
		switch {
		case !s.Approved, !carried[s.ID], s.Action == plan.Keep: // it was not carried out
		case l.Concerns(s, have.Entries[s.ID]):
			made[s.ID.Name] = true
			follows++
		}
	}
	return l, made, follows > 0 && follows == l.Follows
}
