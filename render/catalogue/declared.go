package catalogue

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Declared package is a directory with the CRDs of a provider but without a crossplane.yaml. The options describe the
// package instead.
type Declared struct {
	Path      string // relative to the root of the commit
	Name      string
	SafeStart bool
}

// directory returns the path in the form that the walk uses.
func (d Declared) directory() string {
	return path.Clean(strings.Trim(d.Path, "/"))
}

// isDeclared reports whether a package has no metadata of its own.
func (p *Package) isDeclared() bool { return p.Origin.Line == 0 }

// checkDeclared validates declared packages before any commit is read.
func checkDeclared(packages []Declared) error {
	var found []error
	byPath, byName := map[string]bool{}, map[string]bool{}
	for i, d := range packages {
		at := d.directory()
		switch {
		case d.Path == "" || !fs.ValidPath(at):
			found = append(found, fmt.Errorf("packages[%d].path must be a directory of the commit, relative to its root, not %q", i, d.Path))
		case d.Name == "":
			found = append(found, fmt.Errorf("packages[%d].name is missing", i))
		case byPath[at], byName[d.Name]:
			found = append(found, fmt.Errorf("packages[%d]: %s and %s can be declared once each", i, d.Path, d.Name))
		}
		byPath[at], byName[d.Name] = true, true
	}
	return errors.Join(found...)
}

// declaredPackages returns the declared packages by directory.
func declaredPackages(declared []Declared) map[string]*Package {
	made := make(map[string]*Package, len(declared))
	for _, d := range declared {
		made[d.directory()] = &Package{
			Name:      d.Name,
			Kind:      crossplane.Provider,
			Directory: d.directory(),
			SafeStart: d.SafeStart,
			Origin:    manifest.Origin{Path: d.directory()},
		}
	}
	return made
}

// refuseUnread reports declared packages that the walk has not found. Their CRDs may have been read as ordinary CRDs, which would
// all be applied.
func (w *walk) refuseUnread() {
	for dir, p := range w.declared {
		info, err := fs.Lstat(w.files, dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			w.refuse(p.Origin, fmt.Errorf("is declared to be package %s, and this commit has no such directory", p.Name))
		case err == nil && !info.IsDir():
			w.refuse(p.Origin, fmt.Errorf("is declared to be package %s, and is not a directory", p.Name))
		case err != nil:
			w.refuse(p.Origin, err)
		default:
			w.refuse(p.Origin, fmt.Errorf("is declared to be package %s, and is not read: it is outside of the path, or in a directory that is skipped", p.Name))
		}
	}
}
