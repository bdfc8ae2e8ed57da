package baseline

import (
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const manual = "Manual"

// A standIn is a copy of a package in the tree whose Provider requests a different image than before. If that image
// cannot be read, Headgate compares the copies, because comparing nothing would look like no change.
type standIn struct {
	by   catalogue.Package // the copy, with its installer as the object that names it
	bump plan.Bump
}

// standIns returns the copies of a commit that stand in for an image, by the object that makes Crossplane install it.
func standIns(base, want render.Desired) map[manifest.ID]standIn {
	read := map[manifest.ID]bool{}
	for _, of := range want.Beside {
		for _, by := range append(of.Package.Installers, of.Package.Named, of.Package.Installer) {
			read[by] = true
		}
	}
	all := map[manifest.ID]standIn{}
	for _, p := range want.Packages {
		if p.Pulled() || p.Installer.Name == "" || read[p.Installer] {
			continue
		}
		was, from, known := imageOf(base, p.Installer)
		is, to, asks := imageOf(want, p.Installer)
		if !known || !asks || was.image == is.image {
			continue
		}
		by := p
		by.Named, by.Mentioned = p.Installer, is.origin
		all[p.Installer] = standIn{by, plan.Bump{
			Source: is.source, From: from, To: to, By: p.Installer, Package: p.Directory, Copy: p.Directory, Manual: is.manual,
			Origin: want.Placed(manifest.Finding{Origin: is.origin}).Origin,
		}}
	}
	return all
}

// An askedImage is the image that an object makes Crossplane install.
type askedImage struct {
	image, source string
	manual        bool
	origin        manifest.Origin
}

func imageOf(of render.Desired, installer manifest.ID) (asked askedImage, version string, ok bool) {
	i := slices.IndexFunc(of.Objects, func(o render.Object) bool { return o.ID == installer })
	if i < 0 {
		return askedImage{}, "", false
	}
	u, err := of.Objects[i].Content()
	if err != nil {
		return askedImage{}, "", false
	}
	image, _, _ := unstructured.NestedString(u.Object, "spec", "package")
	by, _, _ := unstructured.NestedString(u.Object, "spec", "revisionActivationPolicy")
	source, version := crossplane.SplitImage(image)
	return askedImage{image, source, by == manual, of.Objects[i].OriginOf("spec", "package")}, version, image != ""
}

// copied reports whether a copy in the tree declares the object, and returns the object that makes Crossplane install
// that package.
func (i installed) copied() (installer manifest.ID, ok bool) {
	return i.of.Installer, !i.of.Pulled() && i.of.Installer.Name != ""
}

// standIn returns the copy that stands in for the image of an object.
func (i installed) standIn(copies map[manifest.ID]standIn) (catalogue.Package, bool) {
	installer, copied := i.copied()
	c, stands := copies[installer]
	return c.by, copied && stands
}

// unchangedCopies returns the bumps whose copy did not change along with the image.
func unchangedCopies(copies map[manifest.ID]standIn, changed map[manifest.ID]bool) []plan.Bump {
	var all []plan.Bump
	for by, c := range copies {
		if !changed[by] {
			c.bump.Unknown = "the image cannot be read, and its copy in " + c.by.Directory + " is the same as before"
		}
		all = append(all, c.bump)
	}
	slices.SortFunc(all, func(a, b plan.Bump) int { return a.Origin.Compare(b.Origin) })
	return all
}
