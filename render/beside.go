package render

import (
	"slices"

	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Beside is an image that an object of the commit makes Crossplane install, although the tree has a copy of it. The copy declares
// the definitions of the commit; the image is what gets installed.
type Beside struct {
	Package     catalogue.Package
	Definitions []DecidedDefinition // by name, decided by the policies of the commit
	Left        []Left
}

// beside returns the images that also have a copy in the tree.
func (how Options) beside(c catalogue.Catalogue, settled string) []Beside {
	var all []Beside
	for _, image := range c.Beside {
		of := Beside{Package: image.Package}
		decisions, _ := activation.Decide(catalogue.Catalogue{Definitions: image.Definitions, Policies: c.Policies})
		for _, d := range activation.With(decisions, how.undeclared(c)) {
			of.Definitions = append(of.Definitions, DecidedDefinition{Decision: d, conversion: how.Conversion, settled: settled, compared: how.Compares})
		}
		for _, o := range image.Objects {
			of.Left = append(of.Left, Left{ID: o.ID(), APIVersion: o.GetAPIVersion(), Origin: o.Origin, Package: image.Package.Directory, Content: content(o)})
		}
		all = append(all, of)
	}
	return all
}

func content(o manifest.Object) func() (*unstructured.Unstructured, error) { return o.Document.Recall }

// Installs returns the content of the registry package that an object of the commit names: its definitions, its CRDs and XRDs, and
// its digest. Crossplane leaves dependencies unchanged.
func (d Desired) Installs(by manifest.ID) (definitions []DecidedDefinition, others []Left, digest string) {
	for _, of := range d.Beside {
		if of.Package.Named == by {
			declare := slices.DeleteFunc(slices.Clone(of.Left), func(o Left) bool { return !crossplane.DeclaresKind(o.ID) })
			return of.Definitions, declare, of.Package.Digest
		}
	}
	i := slices.IndexFunc(d.Packages, func(p catalogue.Package) bool { return p.Pulled() && p.Named == by })
	if i < 0 {
		return nil, nil, ""
	}
	for _, of := range d.Definitions {
		if of.Package != nil && of.Package.Directory == d.Packages[i].Directory {
			definitions = append(definitions, of)
		}
	}
	for _, o := range d.Left {
		if o.Package == d.Packages[i].Directory && crossplane.DeclaresKind(o.ID) {
			others = append(others, o)
		}
	}
	return definitions, others, d.Packages[i].Digest
}

// Copied returns the same for a package whose image was not read, from its copy in the tree. content identifies the content of the
// copy.
func (d Desired) Copied(by manifest.ID) (definitions []DecidedDefinition, others []Left, content string) {
	i := slices.IndexFunc(d.Packages, func(p catalogue.Package) bool { return !p.Pulled() && p.Installer == by && by.Name != "" })
	if i < 0 {
		return nil, nil, ""
	}
	of := d.Packages[i].Directory
	for _, one := range d.Definitions {
		if one.Package != nil && one.Package.Directory == of {
			definitions = append(definitions, one)
		}
	}
	for _, o := range d.Left {
		if o.Package == of && crossplane.DeclaresKind(o.ID) {
			others = append(others, o)
		}
	}
	return definitions, others, "copy " + of + " " + d.Revision
}
