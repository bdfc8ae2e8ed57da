package record

import (
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// PathOf returns the file of the commit that declares a step's object; "" if it is not known or not stable, such as the path in a
// package from a registry, which contains the version.
func PathOf(p plan.Plan, s plan.Step) string {
	if _, pulled := p.Want.Within(s.Origin); pulled {
		return ""
	}
	return s.Origin.Path
}

// locate records the files of the plan's objects.
func locate(p plan.Plan, next *inventory.Inventory) {
	for _, s := range p.Steps {
		e, owned := next.Entries[s.ID]
		if path := PathOf(p, s); owned && path != "" {
			e.Path = path
			next.Entries[s.ID] = e
		}
	}
	// The new record has a format. From then on, an entry without a path means that no file declared the object.
	if next.Record.Format == 0 {
		declared := map[manifest.ID]bool{}
		for _, s := range p.Steps {
			declared[s.ID] = s.Origin.Path != "" || s.Applies()
		}
		for id, e := range next.Entries {
			if e.Path == "" && !declared[id] {
				e.Path = inventory.Anywhere
				next.Entries[id] = e
			}
		}
	}
}

// recordCommit records the source of the commit and its policies. A sync that ends has no commit.
func recordCommit(p plan.Plan, was inventory.SourceRecord, next *inventory.Record) {
	if p.Stance.In(plan.Ending) {
		return
	}
	next.Source = Recorded(p, was)
	if !p.Partial {
		next.Images = inventory.ImagesOf(p.Want)
		next.Policies, next.PolicyNames = PolicyFiles(p, *next), inventory.PolicyNames(p.Want, next.PolicyNames)
	}
}

// PolicyFiles returns the policy files to record: those of the commit, and recorded ones that the commit skips now, or that now
// declare a kind which no API serves.
func PolicyFiles(p plan.Plan, have inventory.Record) []string {
	files, unserved := inventory.PolicyFiles(p.Want, have.Policies), p.Select(plan.Step.IsUnserved)
	for _, path := range have.Policies {
		if slices.ContainsFunc(unserved.Steps, func(s plan.Step) bool { return inventory.Covers(path, s.Origin.Path) }) {
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}
