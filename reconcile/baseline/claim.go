package baseline

import (
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// claimed replaces the bumps of packages whose content only the new commit keeps. They count as unknown, because the author of
// the commit wrote that content and no registry confirms it. The report shows their changes all the same. See ADR 22.
func claimed(all []plan.Bump, base, want render.Desired) []plan.Bump {
	for _, claim := range want.Claims(base) {
		p := claim.Package
		if len(claim.Adds) > 0 {
			continue // the added content is not compared with anything
		}
		all = slices.DeleteFunc(all, func(b plan.Bump) bool { return b.Source == p.Source })
		bump := plan.Bump{Source: p.Source, Package: p.Directory, By: p.Named, Manual: p.Manual, Origin: asked(want, p), Unknown: claim.Unknown()}
		if old, ok := bySource(images(base), p.Source); ok {
			bump.From = old.Version
		}
		all = append(all, bump)
	}
	return all
}

// asked returns the line of the commit that requests a package.
func asked(want render.Desired, p catalogue.Package) manifest.Origin {
	return want.Placed(manifest.Finding{Origin: p.Mentioned}).Origin
}
