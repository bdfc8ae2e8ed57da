package draft

import (
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// lostPackages returns the recorded packages that the commit lost, completely or in part, sorted by directory. A package that moved
// is not lost, because its definitions are declared elsewhere. Neither are definitions that the commit does not declare at all.
func lostPackages(want render.Desired, seen facts.Ground) []plan.LostPackage {
	var packages []string
	for _, p := range want.Packages {
		if !p.Pulled() {
			packages = append(packages, p.Directory)
		}
	}
	have := seen.Inventory.Record
	var lost []plan.LostPackage
	for _, dir := range slices.Sorted(maps.Keys(have.Directories())) {
		p := plan.LostPackage{
			Directory: dir, Remains: slices.Contains(packages, dir), Returns: map[string]bool{},
			Packages: packages, Names: inventory.ReadFingerprints(have.Definitions[dir]),
		}
		for _, o := range want.Objects {
			if o.ID.IsCRD() && o.Definition == "" && p.Names.Has(o.ID.Name) {
				p.Returns[o.ID.Name] = true
			}
		}
		stays := !p.Remains && slices.Contains(have.Packages, dir) && slices.ContainsFunc(want.Directories, p.Holds)
		if stays || len(p.Returns) > 0 {
			lost = append(lost, p)
		}
	}
	return lost
}

// notesOnLost warns about lost packages from which no step follows, because every object stays as it is. The guard
// package lost holds the others.
func notesOnLost(p plan.Plan, seen facts.Ground) (notes []manifest.Finding) {
	for _, l := range p.Lost {
		follows := func(s plan.Step) bool { return s.Action != plan.Keep && l.Concerns(s, seen.Inventory.Entries[s.ID]) }
		if !slices.ContainsFunc(p.Steps, follows) {
			notes = append(notes, manifest.Finding{
				Rule: plan.RulePackageLost, Severity: manifest.Warning, Origin: manifest.Origin{Path: l.Directory}, About: manifest.About{Subject: l.Directory},
				Message: "the directory is no longer a package, so its files are plain objects: policies do not decide about its definitions any more",
				Fix:     "restore its crossplane.yaml, or delete the directory",
			})
		}
	}
	return notes
}

// remember computes what the inventory will record of packages after the plan was carried out.
func (p *drafted) remember(seen facts.Observed) {
	lost := map[string]bool{} // directories from whose loss a step follows
	for i, l := range p.Lost {
		for _, s := range p.Steps {
			if s.Action != plan.Keep && l.Concerns(s, seen.Inventory.Entries[s.ID]) {
				p.Lost[i].Follows++
				lost[l.Directory] = true
			}
		}
	}
	have := seen.Inventory.Record
	next, known := inventory.Record{}.WithPackages(p.Want), declaredNow(p.Want, seen.Live)
	current := next.Directories()
	for dir := range have.Directories() {
		names := inventory.ReadFingerprints(have.Definitions[dir])
		switch {
		case !lost[dir]:
			next.NoteDefinitions(dir, names.Without(known)) // an earlier definition may come back as a plain CRD
		case !current[dir] && slices.Contains(have.Packages, dir):
			next.AddPackage(dir, names)
		default:
			next.NoteDefinitions(dir, names)
		}
	}
	next = next.Bounded()
	next.Adoption, next.Ignored = string(seen.Terms.Adoption), demand.IgnoredPaths(seen)
	p.Record, p.Known = &next, known
	samePackages := slices.Equal(have.Packages, next.Packages) && maps.Equal(have.Definitions, next.Definitions)
	sameTerms := have.Adoption == next.Adoption && demand.Includes(have.Ignored, next.Ignored)
	p.News = !samePackages || !sameTerms
}

// declaredNow returns the names that are a definition of a package in the tree, or a CRD that exists.
func declaredNow(want render.Desired, seen facts.Live) map[string]bool {
	known := map[string]bool{}
	for _, d := range want.Definitions {
		known[d.Name] = known[d.Name] || d.Package != nil && !d.Package.Pulled()
	}
	for _, o := range want.Objects {
		_, exists := seen.Objects[o.ID]
		known[o.ID.Name] = known[o.ID.Name] || exists && o.ID.IsCRD()
	}
	return known
}
