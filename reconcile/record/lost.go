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
	next := have
	next.Packages, next.Definitions = nil, nil
	next.Adoption, next.Ignored = p.Record.Adoption, p.Record.Ignored
	for _, of := range []inventory.Record{have, *p.Record} {
		for dir := range of.Directories() {
			if names := inventory.ReadFingerprints(of.Definitions[dir]); slices.Contains(of.Packages, dir) {
				next.AddPackage(dir, names)
			} else {
				next.NoteDefinitions(dir, names)
			}
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
	carried := map[manifest.ID]bool{}
	for _, o := range done {
		carried[o.ID] = o.IsOver()
	}
	next := have.Record
	next.Packages, next.Definitions = nil, nil
	next.Adoption, next.Ignored = p.Record.Adoption, p.Record.Ignored
	for dir := range p.Record.Directories() {
		names := inventory.ReadFingerprints(p.Record.Definitions[dir])
		l, made, isOver := carriedLoss(p, dir, carried, have)
		switch {
		case isOver && !l.Remains:
			next.NoteDefinitions(dir, names.Without(made).Without(p.Known))
		case isOver:
			next.AddPackage(dir, names.Without(made))
		case slices.Contains(p.Record.Packages, dir):
			next.AddPackage(dir, names)
		default:
			next.NoteDefinitions(dir, names)
		}
	}
	return next.Bounded()
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
		if !s.Approved || !carried[s.ID] {
			continue
		}
		if s.Action != plan.Keep && l.Concerns(s, have.Entries[s.ID]) {
			made[s.ID.Name] = true
			follows++
		}
	}
	return l, made, follows > 0 && follows == l.Follows
}
