package render

import (
	"errors"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// Owner says who makes the CRDs of definitions.
type Owner string

// The owners. Auto is Crossplane where its API is served or the commit installs it,
// and else Headgate: whoever renders has to know which.
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

// OwnerBy is who makes the CRDs where nothing but a commit tells: Crossplane if the commit
// installs it or gives it packages to install, else Headgate.
func OwnerBy(in Input, limits manifest.Limits) (Owner, error) {
	c, err := catalogue.Read(in.Files, in.Path, limits)
	var wrong catalogue.Errors
	if err != nil && !errors.As(err, &wrong) { // what is wrong with the commit is said when it is rendered
		return "", err
	}
	for _, o := range c.Objects {
		id := o.ID()
		if id.Group == "pkg.crossplane.io" || id.IsCRD() && strings.HasSuffix(id.Name, ".pkg.crossplane.io") {
			return OwnerCrossplane, nil
		}
	}
	return OwnerHeadgate, nil
}
