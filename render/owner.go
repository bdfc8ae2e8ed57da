package render

import (
	"slices"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"
)

// Owner is the tool that creates the CRDs of definitions.
type Owner string

// The owners. Auto means Crossplane if its API is served or the commit installs it, or else Headgate. The caller of Render
// determines whether the API is served.
const (
	OwnerHeadgate   Owner = "Headgate"
	OwnerCrossplane Owner = "Crossplane"
	OwnerAuto       Owner = "Auto"
)

// Leaves reports whether Headgate leaves the content of a package to Crossplane's package manager. It does if an object of the
// commit makes Crossplane install the package. It also does for a dependency of a project: Crossplane installs it together with the
// configuration that the project builds.
func (o Owner) Leaves(p *catalogue.Package) bool {
	return o == OwnerCrossplane && p != nil && (p.Installer.Name != "" || p.Pulled())
}

// unread returns findings and errors about packages with unknown content. If Crossplane installs such a package, the result is a
// finding. If Headgate makes the CRDs, the result is an error: Headgate could prune definitions that the package declares.
func (o Owner) unread(c catalogue.Catalogue) (found []manifest.Finding, refused catalogue.Errors) {
	for _, p := range c.Unread {
		if o == OwnerHeadgate {
			refused = append(refused, catalogue.Errorf(p.Origin, "%w; this sync would have to create the CRDs of its definitions", p.Err))
			continue
		}
		found = append(found, manifest.Finding{
			Rule: packages.RuleUnread, Severity: manifest.Warning, Origin: p.Origin, About: manifest.About{Subject: p.Source + " " + p.Wanted},
			Message: p.Err.Error() + "; its content is not known here",
		})
	}
	return found, refused
}

// by returns the tool that makes the CRDs. For Auto that is Crossplane if the commit installs Crossplane, gives it packages to
// install, or is a project; otherwise Headgate.
func (o Owner) by(c catalogue.Catalogue) Owner {
	switch o {
	case "":
		return OwnerHeadgate
	case OwnerAuto:
		if given(c) != nil {
			return OwnerCrossplane
		}
		return OwnerHeadgate
	}
	return o
}

// A Given is the first part of a commit that is for Crossplane's package manager: an object of it or its CRD, or a project.
type Given struct {
	Kind, Name string
	Origin     manifest.Origin
}

// given returns what a commit gives to Crossplane's package manager, or nil.
func given(c catalogue.Catalogue) *Given {
	if i := slices.IndexFunc(c.Packages, func(p catalogue.Package) bool { return p.Project != nil }); i >= 0 {
		return &Given{"Project", c.Packages[i].Name, c.Packages[i].Origin}
	}
	for _, object := range c.Objects {
		if id := object.ID(); id.Group == crossplane.Packages || crossplane.IsPackageCRD(id) {
			return &Given{id.Kind, id.Name, object.Origin}
		}
	}
	return nil
}
