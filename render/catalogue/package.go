package catalogue

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// metaFile is the file that makes a directory a package.
const metaFile = "crossplane.yaml"

// A beginning describes the package that begins in a directory.
type beginning struct {
	in   *Package // nil: no package
	read []*file  // the files that were read to find the package
}

// enter returns the package that begins in a directory: a declared one, or the package of its crossplane.yaml or project file,
// which enter reads. isRegular reports whether a name is a regular file. ok is false if one of the files is invalid.
func (w *walk) enter(dir string, isRegular func(name string) bool) (begins beginning, ok bool) {
	declared := w.declared[dir]
	delete(w.declared, dir)
	var p *Package
	for _, name := range append([]string{metaFile}, projectFiles...) {
		if p != nil || !isRegular(name) {
			continue
		}
		var documents []*manifest.Document
		if name == metaFile {
			p, documents, ok = w.readPackage(dir)
		} else {
			p, documents, ok = w.readProject(dir, name)
		}
		if !ok {
			return beginning{}, false
		}
		begins.read = append(begins.read, &file{path: path.Join(dir, name), documents: documents})
	}
	switch {
	case declared != nil && p != nil:
		w.refuse(p.Origin, fmt.Errorf("is the metadata of package %s, so %s cannot be declared to be package %s: remove the declaration", p.Name, dir, declared.Name))
		return beginning{}, false
	case declared != nil:
		p = declared
	}
	if p != nil {
		w.packages = append(w.packages, p)
	}
	begins.in = p
	return begins, true
}

// sources returns the package whose sources are in a directory: the package in its subdirectory "package".
func (w *walk) sources(dir string) *Package {
	below := path.Join(dir, "package")
	name := path.Join(below, metaFile)
	if !w.isFile(name) || w.ignored.matches(below, true) {
		return nil
	}
	documents, err := w.reader.Read(name)
	i := slices.IndexFunc(documents, isMeta)
	if err != nil || i < 0 {
		return nil // the walk reads it again later and reports the error
	}
	return &Package{Name: documents[i].Header.Name, Kind: documents[i].Header.Kind, Directory: below, Origin: documents[i].Origin}
}

// noteSource adds a note that a directory next to a package is not applied, because the author may expect it to be.
func (w *walk) noteSource(dir string, of *Package) {
	w.findings = append(w.findings, manifest.Finding{
		Rule: RuleBuildInput, Severity: manifest.Note, Origin: manifest.Origin{Path: dir}, About: manifest.About{Subject: dir},
		Message: fmt.Sprintf("%s counts as build and test input of %s package %s in %s: nothing of it is applied", dir, of.Kind, of.Name, of.Directory),
		Fix:     "select it with --path, or move it, if it is meant to be applied",
	})
}

// isSourceOnly reports whether a directory next to a package directory contains only inputs for building and testing the package.
// Only providers use the directory "cluster" for that.
func isSourceOnly(of *Package, directory string) bool {
	return of != nil && (isBuildInput(directory) || of.Kind == crossplane.Provider && directory == "cluster")
}

// readPackage reads the crossplane.yaml of a directory. p is nil if the file is about something else. If ok is false, readPackage
// has recorded the problems.
func (w *walk) readPackage(dir string) (p *Package, documents []*manifest.Document, ok bool) {
	name := path.Join(dir, metaFile)
	documents, err := w.reader.Read(name)
	if err != nil {
		w.problems = append(w.problems, ErrorsOf(manifest.Origin{Path: name}, err)...)
		return nil, nil, false
	}
	p, err = w.packageIn(documents, dir)
	if err != nil {
		w.problems = append(w.problems, ErrorsOf(manifest.Origin{Path: name}, err)...)
		return nil, nil, false
	}
	return p, documents, true
}

// packageIn returns the package whose metadata is among documents, or nil.
func (w *walk) packageIn(documents []*manifest.Document, dir string) (*Package, error) {
	var meta *manifest.Document
	for _, d := range documents {
		switch {
		case !isMeta(d):
		case meta != nil:
			return nil, Errorf(d.Origin, "a package has one metadata document: the first is at %s", meta.Origin)
		default:
			meta = d
		}
	}
	if meta == nil {
		return nil, nil //nolint:nilnil // documents without metadata are no error
	}
	return w.packageOf(meta, dir)
}

// isMeta reports whether a document makes its directory a package.
func isMeta(d *manifest.Document) bool {
	return d.Header.ID().Group == crossplane.Metadata
}

// packageOf returns the package that a document of group meta.pkg.crossplane.io describes.
func (w *walk) packageOf(d *manifest.Document, dir string) (*Package, error) {
	refuse := func(format string, args ...any) (*Package, error) {
		return nil, Errorf(d.Origin, format, args...)
	}
	h := d.Header
	if !crossplane.IsMetadata(h.ID(), h.Version()) {
		return refuse("Crossplane knows no package of kind %s in %s", h.Kind, h.APIVersion)
	}
	if h.Name == "" {
		return refuse("the package has no metadata.name: give it one")
	}
	u, err := d.Recall()
	if err != nil {
		return nil, ErrorsOf(d.Origin, err)
	}
	capabilities, err := capabilitiesOf(u)
	if err != nil {
		return refuse("spec.capabilities of %s must be a list of strings", h.Name)
	}
	p := &Package{
		Name:      h.Name,
		Kind:      h.Kind,
		Directory: dir,
		SafeStart: slices.ContainsFunc(capabilities, crossplane.IsSafeStart),
		Origin:    d.Origin,
		Release:   releaseOf(u),
	}
	if err := w.checkConstraint(p, d, u); err != nil {
		return nil, err
	}
	p.Depends, err = w.dependsOn(p, d, u)
	return p, err
}

// releaseOf returns the release of a package according to its metadata: a label or annotation called version, such as
// app.kubernetes.io/version, or the tag of the controller's image. It returns "" if the metadata has none of them.
func releaseOf(u *unstructured.Unstructured) string {
	for _, texts := range []map[string]string{u.GetLabels(), u.GetAnnotations()} {
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			if path.Base(key) == "version" && texts[key] != "" {
				return texts[key]
			}
		}
	}
	image, _, _ := unstructured.NestedString(u.Object, "spec", "controller", "image")
	_, tag := crossplane.SplitImage(image)
	return tag
}

// checkConstraint returns an error if spec.crossplane.version is not a constraint, as Crossplane does. An unmet constraint is only
// a warning.
func (w *walk) checkConstraint(p *Package, d *manifest.Document, u *unstructured.Unstructured) error {
	spec, _ := u.Object["spec"].(map[string]any)
	if spec["crossplane"] == nil {
		return nil
	}
	at := d.OriginOf("spec", "crossplane", "version")
	text, _, err := unstructured.NestedString(spec, "crossplane", "version")
	constraint, bad := semver.NewConstraint(text)
	if err != nil || bad != nil {
		return Errorf(at, "spec.crossplane.version of %s must be a constraint, as \">=v2.0.0\", not %q", p.Name, text)
	}
	if !w.version.Meets(constraint) {
		w.findings = append(w.findings, manifest.Finding{
			Rule: RuleIncompatible, Severity: manifest.Warning, Origin: at, About: manifest.About{Subject: p.Name},
			Message: fmt.Sprintf("%s package %s needs Crossplane %s, and %s would not install it", p.Kind, p.Name, text, w.version),
			Fix:     "use a version of the package that supports it, or set ignoreCrossplaneConstraints on the object that installs it",
		})
	}
	return nil
}

// installer returns the object that makes Crossplane install a package of the tree: an object with its name, or one whose image has
// its name.
func installer(p *Package, objects []manifest.Object) manifest.ID {
	for _, o := range objects {
		id := o.ID()
		if id.Group != crossplane.Packages || id.Kind != p.Kind {
			continue
		}
		image, _, _ := unstructured.NestedString(o.Object, "spec", "package")
		if id.Name == p.Name || crossplane.ImageName(image) == p.Name {
			return id
		}
	}
	return manifest.ID{}
}

// malformedInstall returns errors in an object that would make it install no package: without the package, its definitions would
// look removed.
func malformedInstall(u *undecoded) Errors {
	if !crossplane.IsPackage(u.Header.ID()) {
		return nil
	}
	spec, _ := u.object.Object["spec"].(map[string]any)
	image, _ := spec["package"].(string)
	if source, version := crossplane.SplitImage(image); source != "" && version != "" {
		return nil
	}
	return Errors{Errorf(u.OriginOf("spec", "package"), "spec.package of %s %s must name an image with its tag or digest, such as registry.example.org/team/package:v1.0.0", u.Header.Kind, u.Header.Name)}
}

// capabilitiesOf returns the capabilities of a package. Like the API server, it takes an empty field for one that is left out.
func capabilitiesOf(u *unstructured.Unstructured) ([]string, error) {
	if given, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "capabilities"); given == nil {
		return nil, nil
	}
	all, _, err := unstructured.NestedStringSlice(u.Object, "spec", "capabilities")
	return all, err
}
