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

// A beginning is what begins in a directory.
type beginning struct {
	in   *Package // nil: no package
	read []*file  // that were read to find out
}

// enter returns the package that begins in a directory: one that is declared to be there, or the one of its
// crossplane.yaml or project, which is read. isRegular reports whether a name is a regular file. ok is false if one of
// the files is invalid.
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

// sources returns the package that a directory holds the sources of: the one in its directory "package".
func (w *walk) sources(dir string) *Package {
	below := path.Join(dir, "package")
	name := path.Join(below, metaFile)
	if !w.isFile(name) || w.ignored.matches(below, true) {
		return nil
	}
	documents, err := w.reader.Read(name)
	i := slices.IndexFunc(documents, isMeta)
	if err != nil || i < 0 {
		return nil // it is read again, and reported, on the way down
	}
	return &Package{Name: documents[i].Header.Name, Kind: documents[i].Header.Kind, Directory: below, Origin: documents[i].Origin}
}

// noteSource adds a note that a directory beside a package is not applied, because the author may expect it to be.
func (w *walk) noteSource(dir string, of *Package) {
	w.findings = append(w.findings, manifest.Finding{
		Rule: RuleBuildInput, Severity: manifest.Note, Origin: manifest.Origin{Path: dir},
		Message: fmt.Sprintf("%s is taken for what %s package %s in %s is built and tested with: nothing of it is applied", dir, of.Kind, of.Name, of.Directory),
		Fix:     "name it with --path, or move it, if it is meant to be applied",
	})
}

// isSourceOnly reports whether a directory beside a package directory holds what the package is built and tested
// with. Only providers are built with what is in a directory "cluster".
func isSourceOnly(of *Package, directory string) bool {
	return of != nil && (isBuildInput(directory) || of.Kind == crossplane.Provider && directory == "cluster")
}

// readPackage reads the crossplane.yaml of a directory. There is no package where
// the file is about something else, and nothing but problems where it is not ok.
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

// packageIn is the package whose metadata is among documents, or nil where there is none.
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

// packageOf is the package that a document of group meta.pkg.crossplane.io is about.
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
	capabilities, _, err := unstructured.NestedStringSlice(u.Object, "spec", "capabilities")
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

// releaseOf returns the release that the metadata of a package names: in a label or an annotation called version, such as
// app.kubernetes.io/version, or as the tag of the controller's image; "" if it names none.
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

// checkConstraint wants of spec.crossplane.version what Crossplane wants of it: a
// constraint. That the release is outside of it is for a person to know.
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
			Rule: RuleIncompatible, Severity: manifest.Warning, Origin: at,
			Message: fmt.Sprintf("%s package %s wants Crossplane %s, which %s is not: that would not install it", p.Kind, p.Name, text, w.version),
			Fix:     "take a version of the package that is made for it, or set ignoreCrossplaneConstraints where it is installed",
		})
	}
	return nil
}

// installer is the object that has Crossplane install a package that is in the tree,
// too: one of its name, or one whose image is called so.
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

// malformedInstall returns what is wrong with an object that installs a package, and that would
// make it install none: without the package, its definitions look as if they were removed.
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
