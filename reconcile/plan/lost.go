package plan

import (
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
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
		return known || entry.Path != "" && p.Holds(entry.Path)
	case s.Definition: // it is still a definition
		return false
	}
	return known || s.Origin.Path != "" && p.Holds(s.Origin.Path)
}

// Holds reports whether a file is in the lost package and in no other one.
func (p LostPackage) Holds(file string) bool {
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
