package render

import "headgate.dev/headgate/render/catalogue"

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
