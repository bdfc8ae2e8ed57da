package render

import (
	"strings"

	"headgate.dev/headgate/render/catalogue"
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

// leaves says whether what came with a package is left to Crossplane's package manager,
// since an object of the commit has it install that package.
func (o Owner) leaves(p *catalogue.Package) bool {
	return o == OwnerCrossplane && p != nil && p.Installer.Name != ""
}

// by is who makes the CRDs: for Auto, Crossplane if the commit installs it or gives it
// packages to install, else Headgate.
func (o Owner) by(c catalogue.Catalogue) Owner {
	switch o {
	case "":
		return OwnerHeadgate
	case OwnerAuto:
		for _, object := range c.Objects {
			id := object.ID()
			if id.Group == "pkg.crossplane.io" || id.IsCRD() && strings.HasSuffix(id.Name, ".pkg.crossplane.io") {
				return OwnerCrossplane
			}
		}
		return OwnerHeadgate
	}
	return o
}
