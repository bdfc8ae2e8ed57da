package plan

import (
	"maps"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// Without its crossplane.yaml, a package becomes a directory of plain CRDs, and all of them would be created. Therefore, the
// inventory records which directories were packages, and what they declared.

// A LostPackage is a package of an applied commit whose directory is no longer a package, or whose definitions became plain CRDs.
type LostPackage struct {
	Directory string
	Remains   bool                   // it is still a package, but some of its definitions became plain CRDs
	Returns   map[string]bool        // names of its definitions that are plain CRDs now
	Packages  []string               // directories of this commit's packages, whose files do not belong to this one
	Names     inventory.Fingerprints // names of its definitions
	Follows   int                    // number of steps in the plan that follow from the loss
}

// lostPackages returns the recorded packages that the commit lost, completely or in part, sorted by directory. A package that moved
// is not lost, because its definitions are declared elsewhere. Neither are definitions that the commit does not declare at all.
func lostPackages(want render.Desired, seen Observed) []LostPackage {
	var packages []string
	for _, p := range want.Packages {
		if !p.Pulled() {
			packages = append(packages, p.Directory)
		}
	}
	have := seen.Inventory.Record
	var lost []LostPackage
	for _, dir := range slices.Sorted(maps.Keys(have.Directories())) {
		p := LostPackage{
			Directory: dir, Remains: slices.Contains(packages, dir), Returns: map[string]bool{},
			Packages: packages, Names: inventory.ReadFingerprints(have.Definitions[dir]),
		}
		for _, o := range want.Objects {
			if o.ID.IsCRD() && o.Definition == "" && p.Names.Has(o.ID.Name) {
				p.Returns[o.ID.Name] = true
			}
		}
		stays := !p.Remains && slices.Contains(have.Packages, dir) && slices.ContainsFunc(want.Directories, p.holds)
		if stays || len(p.Returns) > 0 {
			lost = append(lost, p)
		}
	}
	return lost
}

// Concerns reports whether a step follows from the loss of the package.
func (p LostPackage) Concerns(s Step, entry inventory.Entry) bool {
	defines := s.ID.IsCRD() || crossplane.IsMRD(s.ID)
	known := defines && p.Names.Has(s.ID.Name)
	switch {
	case s.Deactivates:
		return false
	case p.Remains:
		return defines && !s.Definition && p.Returns[s.ID.Name]
	case s.Action == Prune || s.Would == Prune:
		return known || entry.Path != "" && p.holds(entry.Path)
	case s.Definition: // it is still a definition
		return false
	}
	return known || s.Origin.Path != "" && p.holds(s.Origin.Path)
}

// holds reports whether a file is in the lost package and in no other one.
func (p LostPackage) holds(file string) bool {
	return isWithin(file, p.Directory) && !slices.ContainsFunc(p.Packages, func(dir string) bool {
		return isWithin(dir, p.Directory) && isWithin(file, dir)
	})
}

// isWithin reports whether a path is a directory or is below it.
func isWithin(name, directory string) bool {
	name = path.Clean(name)
	return directory == "." || name == directory || strings.HasPrefix(name, directory+"/")
}

// RulePackageLost is the rule for a directory that was a package.
const RulePackageLost = "package-lost"

// NotesOf returns the notes with a rule.
func (p Plan) NotesOf(rule string) []manifest.Finding {
	return slices.DeleteFunc(slices.Clone(p.Notes), func(f manifest.Finding) bool { return f.Rule != rule })
}

// notesOnLost warns about lost packages from which no step follows, because every object stays as it is. The guard
// package lost holds the others.
func (p Plan) notesOnLost(seen Observed) (notes []manifest.Finding) {
	for _, l := range p.Lost {
		follows := func(s Step) bool { return s.Action != Keep && l.Concerns(s, seen.Inventory.Entries[s.ID]) }
		if !slices.ContainsFunc(p.Steps, follows) {
			notes = append(notes, manifest.Finding{
				Rule: RulePackageLost, Severity: manifest.Warning, Origin: manifest.Origin{Path: l.Directory},
				Message: "the directory is no longer a package, so its files are plain objects: policies do not decide about its definitions any more",
				Fix:     "restore its crossplane.yaml, or delete the directory",
			})
		}
	}
	return notes
}

// remember computes what the inventory will record of packages after the plan was carried out.
func (p *drafted) remember(seen Observed) {
	if seen.Stance != Applying {
		return
	}
	for i, l := range p.Lost {
		for _, s := range p.Steps {
			if s.Action != Keep && l.Concerns(s, seen.Inventory.Entries[s.ID]) {
				p.Lost[i].Follows++
			}
		}
	}
	have := seen.Inventory.Record
	next := inventory.Record{}.WithPackages(p.Want)
	known := map[string]bool{} // names that are now a definition of an in-tree package, or an existing CRD
	for _, d := range p.Want.Definitions {
		known[d.Name] = known[d.Name] || d.Package != nil && !d.Package.Pulled()
	}
	for _, o := range p.Want.Objects {
		_, exists := seen.Objects[o.ID]
		known[o.ID.Name] = known[o.ID.Name] || exists && o.ID.IsCRD()
	}
	current := next.Directories()
	for dir := range have.Directories() {
		names := inventory.ReadFingerprints(have.Definitions[dir])
		isLost := slices.ContainsFunc(p.Lost, func(l LostPackage) bool { return l.Directory == dir && l.Follows > 0 })
		switch {
		case !isLost:
			next.NoteDefinitions(dir, names.Without(known)) // an earlier definition may come back as a plain CRD
		case !current[dir] && slices.Contains(have.Packages, dir):
			next.AddPackage(dir, names)
		default:
			next.NoteDefinitions(dir, names)
		}
	}
	next = next.Bounded()
	next.Adoption, next.Ignored = string(seen.Terms.Adoption), seen.ignoredPaths()
	p.Record, p.Known = &next, known
	p.News = !slices.Equal(have.Packages, next.Packages) || !maps.Equal(have.Definitions, next.Definitions) ||
		have.Adoption != next.Adoption || !includes(have.Ignored, next.Ignored)
}

// applying returns the record to store before the first write. It does not forget anything yet.
func (p Plan) applying(have inventory.Record) inventory.Record {
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
func (p Plan) appliedRecord(have inventory.Inventory, done []Outcome) inventory.Record {
	if p.Record == nil {
		return have.Record
	}
	carried := map[manifest.ID]bool{}
	for _, o := range done {
		carried[o.ID] = o.isOver()
	}
	next := have.Record
	next.Packages, next.Definitions = nil, nil
	next.Adoption, next.Ignored = p.Record.Adoption, p.Record.Ignored
	for dir := range p.Record.Directories() {
		names := inventory.ReadFingerprints(p.Record.Definitions[dir])
		l, made, isOver := p.carriedLoss(dir, carried, have)
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
func (p Plan) carriedLoss(dir string, carried map[manifest.ID]bool, have inventory.Inventory) (l LostPackage, made map[string]bool, isOver bool) {
	i := slices.IndexFunc(p.Lost, func(l LostPackage) bool { return l.Directory == dir })
	if i < 0 {
		return l, nil, false
	}
	l, made = p.Lost[i], map[string]bool{}
	follows := 0
	for _, s := range p.Steps {
		if s.Action != Keep && s.Approved && carried[s.ID] && l.Concerns(s, have.Entries[s.ID]) {
			made[s.ID.Name] = true
			follows++
		}
	}
	return l, made, follows > 0 && follows == l.Follows
}
