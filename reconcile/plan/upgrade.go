package plan

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"
)

// The rules of packages in registries whose image is another one than before.
const (
	ruleUpgradeBreaks = "package-breaks-schema"
	ruleUpgradeStuck  = "package-cannot-be-installed"
	ruleUpgradeLeaves = "package-leaves-definition"
	ruleUpgradeUnseen = "package-unread-before"
)

// upgrades finds what a package of a registry changes for the worse, where the base of a
// comparison has another image of it. Crossplane installs it, so no step says so.
func upgrades(want render.Desired, before []render.Definition) []manifest.Finding {
	was := map[string]render.Definition{}
	for _, d := range before {
		if d.Package.Pulled() {
			was[d.Name] = d
		}
	}
	if want.Owner != render.OwnerCrossplane || len(was) == 0 {
		return nil
	}
	is := map[string]bool{}
	var changed []render.Definition
	for _, d := range want.Definitions {
		is[d.Name] = true
		if old, ok := was[d.Name]; ok && d.Package.Pulled() && old.Package.Digest != d.Package.Digest {
			changed = append(changed, d)
		}
	}
	differences := make([]schema.Difference, len(changed))
	manifest.Each(len(changed), func(i int) { differences[i] = differenceOf(was[changed[i].Name], changed[i]) })

	var found []manifest.Finding
	for i, d := range changed {
		found = append(found, upgradeOf(d, differences[i].Breaking())...)
	}
	for _, old := range before {
		by, bumped := successor(want.Packages, old.Package)
		if !bumped || is[old.Name] || !old.Active {
			continue
		}
		found = append(found, manifest.Finding{
			Rule: ruleUpgradeLeaves, Severity: manifest.Warning, Origin: by.Mentioned,
			Message: fmt.Sprintf("%s does not hold %s any more, which was active with %s: its objects stay, and no controller looks after them", by.Directory, old.Name, old.Package.Version),
			Fix:     "delete its objects first, or stay with a version that holds it",
		})
	}
	slices.SortFunc(found, manifest.Finding.Compare)
	return found
}

// unseen finds packages that cannot be read as the base of a comparison has them, and that the
// other side has read: all that they hold looks new.
func unseen(want render.Desired, before []catalogue.Unread) []manifest.Finding {
	var found []manifest.Finding
	for _, u := range before {
		if slices.ContainsFunc(want.Unread, func(other catalogue.Unread) bool { return other.Source == u.Source }) {
			continue // which rendering says
		}
		found = append(found, manifest.Finding{
			Rule: ruleUpgradeUnseen, Severity: manifest.Warning, Origin: u.Origin,
			Message: fmt.Sprintf("before this commit %s; what it holds looks new here, and may not be", u.Err),
			Fix:     "try again where the registry can be reached",
		})
	}
	return found
}

// successor is the package that takes the place of one of the base, with another image.
func successor(packages []catalogue.Package, old *catalogue.Package) (catalogue.Package, bool) {
	if !old.Pulled() {
		return catalogue.Package{}, false
	}
	i := slices.IndexFunc(packages, func(p catalogue.Package) bool { return p.Pulled() && p.Source == old.Source })
	if i < 0 || packages[i].Digest == old.Digest {
		return catalogue.Package{}, false
	}
	return packages[i], true
}

// differenceOf is what changes from one definition to the other; nothing where one of them
// cannot be read, which rendering says where it matters.
func differenceOf(before, after render.Definition) schema.Difference {
	old, err := before.MRD()
	if err != nil {
		return schema.Difference{}
	}
	now, err := after.MRD()
	if err != nil || old.Digest == now.Digest {
		return schema.Difference{}
	}
	was, err := old.Content()
	if err != nil {
		return schema.Difference{}
	}
	is, err := now.Content()
	if err != nil {
		return schema.Difference{}
	}
	return schema.Compare(was, is)
}

// upgradeOf is what is found of the changes of one definition that break something.
func upgradeOf(d render.Definition, breaking []schema.Change) []manifest.Finding {
	if i := slices.IndexFunc(breaking, func(c schema.Change) bool { return c.Rule == schema.Scope || c.Rule == schema.Names }); i >= 0 {
		return []manifest.Finding{{
			Rule: ruleUpgradeStuck, Severity: manifest.Warning, Origin: d.Package.Mentioned,
			Message: fmt.Sprintf("%s changes %s: %s; that is refused for a definition that exists, and nothing of the new version is installed", d.Package.Directory, d.Name, breaking[i]),
			Fix:     "delete the definition when nothing uses it any more, or stay with the version that is installed",
		}}
	}
	if len(breaking) == 0 || !d.Active {
		return nil
	}
	return []manifest.Finding{{
		Rule: ruleUpgradeBreaks, Severity: manifest.Warning, Origin: d.Package.Mentioned,
		Message: fmt.Sprintf("%s breaks the schema of %s: %s", d.Package.Directory, d.Name, strings.TrimSpace(someOf(breaking))),
		Fix:     "change the objects that are stored first, or stay with the version that is installed",
	}}
}
