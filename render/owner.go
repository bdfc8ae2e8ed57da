package render

import (
	"slices"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"
)

// Owner says who makes the CRDs of definitions.
type Owner string

// The owners. Auto is Crossplane where its API is served, which whoever renders has to
// find out, or where the commit installs it; else it is Headgate.
const (
	OwnerHeadgate   Owner = "Headgate"
	OwnerCrossplane Owner = "Crossplane"
	OwnerAuto       Owner = "Auto"
)

// leaves reports whether what came with a package is left to Crossplane's package manager,
// since an object of the commit has it install that package, or since it is only a dependency of a project: whoever
// installs what the project is built into has Crossplane install that, too.
func (o Owner) leaves(p *catalogue.Package) bool {
	return o == OwnerCrossplane && p != nil && (p.Installer.Name != "" || p.Pulled())
}

// unread is what packages of which it is not known what they hold come to: where Crossplane
// installs them, a warning. Who makes the CRDs has to know them: what is not declared can be
// pruned.
func (o Owner) unread(c catalogue.Catalogue) (found []manifest.Finding, refused catalogue.Errors) {
	for _, p := range c.Unread {
		if o == OwnerHeadgate {
			refused = append(refused, catalogue.Errorf(p.Origin, "%w; the CRDs of its definitions are this sync's to make", p.Err))
			continue
		}
		found = append(found, manifest.Finding{
			Rule: packages.RuleUnread, Severity: manifest.Warning, Origin: p.Origin,
			Message: p.Err.Error() + "; what is in it is not known here",
		})
	}
	return found, refused
}

// by is who makes the CRDs: for Auto, Crossplane if the commit installs it or gives it
// packages to install, or is the project of one, else Headgate.
func (o Owner) by(c catalogue.Catalogue) Owner {
	switch o {
	case "":
		return OwnerHeadgate
	case OwnerAuto:
		if slices.ContainsFunc(c.Packages, func(p catalogue.Package) bool { return p.Project != nil }) {
			return OwnerCrossplane
		}
		for _, object := range c.Objects {
			id := object.ID()
			if id.Group == crossplane.Packages || crossplane.IsPackageCRD(id) {
				return OwnerCrossplane
			}
		}
		return OwnerHeadgate
	}
	return o
}
