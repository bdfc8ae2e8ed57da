package catalogue

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// projectFiles are the names of project files. A project is a configuration package before it is built; its file lists the
// directories of the package. A crossplane.yaml in the same directory takes precedence.
var projectFiles = []string{"crossplane-project.yaml", "upbound.yaml"}

// A Project lists the directories that belong to the package, and those that only build and test it. Paths are relative
// to the root of the commit.
type Project struct {
	Ships  []string
	Builds []string
}

// isProject reports whether a document makes its directory a project.
func isProject(d *manifest.Document) bool {
	return d.Header.Kind == "Project" && crossplane.IsDevelopment(d.Header.ID().Group)
}

// readProject reads the project of a directory. p is nil if there is no project. If ok is false, readProject has recorded the
// problems.
func (w *walk) readProject(dir, name string) (p *Package, documents []*manifest.Document, ok bool) {
	at := path.Join(dir, name)
	documents, err := w.reader.Read(at)
	if err != nil {
		w.problems = append(w.problems, ErrorsOf(manifest.Origin{Path: at}, err)...)
		return nil, nil, false
	}
	i := slices.IndexFunc(documents, isProject)
	if i < 0 {
		return nil, documents, true
	}
	p, err = w.projectOf(documents[i], dir)
	if err != nil {
		w.problems = append(w.problems, ErrorsOf(documents[i].Origin, err)...)
		return nil, nil, false
	}
	return p, documents, true
}

// projectOf returns the package that a project is built into.
func (w *walk) projectOf(d *manifest.Document, dir string) (*Package, error) {
	if d.Header.Name == "" {
		return nil, Errorf(d.Origin, "the project has no metadata.name: give it one")
	}
	u, err := d.Recall()
	if err != nil {
		return nil, ErrorsOf(d.Origin, err)
	}
	p := &Package{Name: d.Header.Name, Kind: crossplane.Configuration, Directory: dir, Origin: d.Origin}
	if p.Project, err = pathsOf(d, u, dir); err != nil {
		return nil, err
	}
	if err := w.checkConstraint(p, d, u); err != nil {
		return nil, err
	}
	if p.Depends, err = w.dependsOn(p, d, u); err != nil {
		return nil, err
	}
	more, err := w.dependencies(p, d, u)
	p.Depends = append(p.Depends, more...)
	return p, err
}

// pathsOf returns the directories of a project by purpose, according to spec.paths or their default names.
func pathsOf(d *manifest.Document, u *unstructured.Unstructured, dir string) (*Project, error) {
	spec, _ := u.Object["spec"].(map[string]any)
	paths, isObject := spec["paths"].(map[string]any)
	if !isObject && spec["paths"] != nil {
		return nil, Errorf(d.OriginOf("spec", "paths"), "spec.paths of project %s must be an object", d.Header.Name)
	}
	of := &Project{}
	for _, key := range []string{"apis", "operations", "examples", "tests", "functions", "schemas"} {
		to := key
		if v, found := paths[key]; found {
			text, isText := v.(string)
			to = path.Clean(text)
			if !isText || path.IsAbs(text) || to == ".." || strings.HasPrefix(to, "../") {
				return nil, Errorf(d.OriginOf("spec", "paths", key), "spec.paths.%s of project %s must be a directory below its own", key, d.Header.Name)
			}
		}
		switch to = path.Join(dir, to); key {
		case "apis", "operations":
			of.Ships = append(of.Ships, to)
		default:
			of.Builds = append(of.Builds, to)
		}
	}
	return of, nil
}

// dependencies returns the packages among spec.dependencies. The others are schemas for the build, which Crossplane
// does not install.
func (w *walk) dependencies(p *Package, d *manifest.Document, u *unstructured.Unstructured) ([]Dependency, error) {
	spec, _ := u.Object["spec"].(map[string]any)
	list, isList := spec["dependencies"].([]any)
	if !isList && spec["dependencies"] != nil {
		return nil, Errorf(d.OriginOf("spec", "dependencies"), "spec.dependencies of project %s must be a list", p.Name)
	}
	var all []Dependency
	for i, origin := range d.OriginsOf(len(list), "spec", "dependencies") {
		stated, ok := list[i].(map[string]any)
		if !ok {
			return nil, Errorf(origin, "spec.dependencies[%d] of project %s must be an object", i, p.Name)
		}
		image, ok := stated["xpkg"].(map[string]any)
		if !ok {
			continue
		}
		dep := dependencyOf(image)
		dep.Origin = origin
		if dep.Source == "" {
			w.findings = append(w.findings, manifest.Finding{
				Rule: RuleDependency, Severity: manifest.Warning, Origin: origin, About: manifest.About{Field: "spec.dependencies", Subject: p.Name},
				Message: fmt.Sprintf("spec.dependencies[%d] of project %s names no package", i, p.Name),
				Fix:     "give it apiVersion, kind and package below xpkg",
			})
			continue
		}
		all = append(all, dep)
	}
	return all, nil
}

// ships reports whether the files of a directory belong to the package. Without a project, all files do. p may be nil.
func (p *Package) ships(dir string) bool {
	return p == nil || p.Project == nil || slices.ContainsFunc(p.Project.Ships, func(root string) bool { return isBelow(dir, root) })
}

// onlyBuilds reports whether a directory is one of a project's inputs for building or testing its package.
func (p *Package) onlyBuilds(dir string) bool {
	return p != nil && p.Project != nil && slices.Contains(p.Project.Builds, dir)
}

// isBelow reports whether a directory is root or below root.
func isBelow(dir, root string) bool {
	return root == "." || dir == root || strings.HasPrefix(dir, root+"/")
}
