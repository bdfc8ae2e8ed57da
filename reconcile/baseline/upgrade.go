package baseline

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The rules for packages in registries whose image differs from the base.
const (
	ruleUpgradeStuck  = "package-cannot-be-installed"
	ruleUpgradeUnseen = "package-unread-before"
	ruleUpgradeBroken = "package-not-compared"
)

// An installed object is one that a package installs or will take over.
type installed struct {
	id         manifest.ID
	apiVersion string
	definition *render.DecidedDefinition // nil for other CRDs and for XRDs
	of         catalogue.Package
	object     func() (render.Object, error)
}

// isOutline reports whether an object is a definition without its schemas.
func (i installed) isOutline() bool {
	return i.definition != nil && i.definition.IsOutline()
}

// packaged returns the definitions of a commit, and the CRDs and XRDs that Crossplane installs with packages.
func packaged(want render.Desired) map[manifest.ID]installed {
	all := map[manifest.ID]installed{}
	for i := range want.Definitions {
		if d := &want.Definitions[i]; d.Document != nil && d.Package != nil {
			id := crossplane.MRD(d.Name)
			all[id] = installed{id, crossplane.MRDAPIVersion, d, *d.Package, d.MRD}
		}
	}
	for _, o := range want.Left {
		i := slices.IndexFunc(want.Packages, func(p catalogue.Package) bool {
			return (p.Pulled() || p.Installer.Name != "") && p.Directory == o.Package
		})
		if i < 0 || !crossplane.DeclaresKind(o.ID) {
			continue
		}
		all[o.ID] = installed{o.ID, o.APIVersion, nil, want.Packages[i], o.Object}
	}
	for _, of := range want.Beside { // Crossplane installs the image and not the copy
		for i := range of.Definitions {
			d := &of.Definitions[i]
			id := crossplane.MRD(d.Name)
			all[id] = installed{id, crossplane.MRDAPIVersion, d, of.Package, d.MRD}
		}
		for _, o := range of.Left {
			if crossplane.DeclaresKind(o.ID) {
				all[o.ID] = installed{o.ID, o.APIVersion, nil, of.Package, o.Object}
			}
		}
	}
	return all
}

// images returns the packages of a commit, including the images that have a copy in the tree.
func images(want render.Desired) []catalogue.Package {
	all := slices.Clone(want.Packages)
	for _, of := range want.Beside {
		all = append(all, of.Package)
	}
	return all
}

// upgrades returns the packages whose image differs from the base, by the lines that request them, and the objects that
// Crossplane installs with them, by identity. Each of these objects is an effect of the object that names the package.
func (b Baseline) upgrades(want render.Desired) ([]plan.Bump, []plan.Effect) {
	if want.Owner != render.OwnerCrossplane {
		return claimed(nil, b.Base, want), nil
	}
	was, is := packaged(b.Base), packaged(want)
	stays := map[manifest.ID]bool{}
	for _, o := range want.Objects {
		stays[o.ID] = true
	}
	for _, o := range b.Base.Objects { // objects that a package takes over
		if _, known := was[o.ID]; !known {
			was[o.ID] = installed{id: o.ID, object: func() (render.Object, error) { return o, nil }}
		}
	}
	bumped, copies, changed := bumps(b.Base, want), standIns(b.Base, want), map[manifest.ID]bool{}
	var effects []plan.Effect
	var before, after []installed // the two sides of each effect, in the same order
	add := func(action plan.Action, old, now installed, by catalogue.Package) *plan.Effect {
		e := plan.Effect{
			Kind: plan.Install, Of: by.Named, On: now.id, Package: by.Directory,
			Change: &plan.Step{Action: action, Cause: plan.Commit, ID: now.id, APIVersion: now.apiVersion, Serves: now.definition == nil},
		}
		e.Change.Origin = want.Placed(manifest.Finding{Origin: by.Mentioned}).Origin
		if d := now.definition; d != nil {
			e.Change.Definition, e.Because = true, d.Reasons
			e.Change.Serves = old.definition != nil && old.definition.Active
		}
		effects, before, after = append(effects, e), append(before, old), append(after, now)
		return &effects[len(effects)-1]
	}
	for _, id := range slices.SortedFunc(maps.Keys(is), manifest.ID.Compare) {
		now := is[id]
		old, known := was[id]
		by, copied := now.copied()
		switch {
		case copied && known && copies[by].by.Named == by:
			add(plan.Update, old, now, copies[by].by)
		case !now.of.Pulled(), known && old.of.Digest == now.of.Digest:
		case known && (old.isOutline() || now.isOutline()): // an inactive definition that is only partly known
		case known:
			add(plan.Update, old, now, now.of)
		case takesPlace(images(b.Base), now.of):
			add(plan.Create, old, now, now.of)
		}
	}
	failed := make([]error, len(effects))
	manifest.Each(len(effects), func(i int) {
		if s := effects[i].Change; s.Action == plan.Update {
			_, copied := after[i].copied()
			s.Write, failed[i] = replacing(before[i], after[i], copied)
		}
	})
	for i, err := range failed {
		if err != nil && effects[i].Change.Serves {
			unknown(bumped, effects[i], err)
		}
	}
	effects = slices.DeleteFunc(effects, func(e plan.Effect) bool { return e.Change.Action == plan.Update && e.Change.Live == nil })

	for _, e := range effects {
		if _, copied := copies[e.Of]; copied {
			changed[e.Of] = true
		}
	}
	for id, old := range was {
		by, replaced := successor(images(want), old.of)
		if installer, copied := old.copied(); copied && copies[installer].by.Named == installer {
			by, replaced = copies[installer].by, true
		}
		if _, kept := is[id]; kept || stays[id] || !replaced {
			continue
		}
		e := add(plan.Keep, old, old, by)
		e.Change.Cause, e.Change.Reason = plan.Retain, plan.NotUpdatedAnyMore.With()
		if old.definition != nil {
			e.Because, e.Change.Reason = nil, plan.KindDropped.With()
		}
		changed[e.Of] = true
	}
	bumped = append(bumped, unchangedCopies(copies, changed)...)
	slices.SortStableFunc(bumped, func(a, b plan.Bump) int { return a.Origin.Compare(b.Origin) })
	slices.SortFunc(effects, func(a, b plan.Effect) int { return a.On.Compare(b.On) })
	return bumped, effects
}

// replacing returns how an update of a package changes an object, or no write if both are equal. For a copy,
// Headgate does not know whether a webhook converts stored objects.
func replacing(before, after installed, copied bool) (plan.Write, error) {
	was, err := before.object()
	if err != nil {
		return plan.Write{}, err
	}
	is, err := after.object()
	if err != nil || was.Digest == is.Digest {
		return plan.Write{}, err
	}
	r, err := replacementOf(was, is)
	if err != nil {
		return plan.Write{}, err
	}
	whole := plan.Lazy(func() (*unstructured.Unstructured, error) { return contentOf(after.object()) })
	if copied {
		difference, _, _ := r.Difference.Unconverting()
		return plan.Replacement(r.live(), r.after(), difference, converted(whole)), nil
	}
	return plan.Replacement(r.live(), r.after(), r.Difference, whole), nil
}

func contentOf(o render.Object, err error) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	return o.Content()
}

// unknown records that the package of an effect could not be compared.
func unknown(bumped []plan.Bump, of plan.Effect, err error) {
	for i, b := range bumped {
		if b.Unknown == "" && b.Package == of.Package {
			bumped[i].Unknown = fmt.Sprintf("%s cannot be compared: %s", of.On.Name, err)
		}
	}
}

// bumps returns the packages whose images differ between two commits, and those whose image is not known.
func bumps(base, want render.Desired) []plan.Bump {
	var all []plan.Bump
	for _, p := range images(want) {
		if !p.Pulled() {
			continue
		}
		bump := plan.Bump{
			Source: p.Source, To: p.Version, Package: p.Directory, By: p.Named, Manual: p.Manual,
			Origin: want.Placed(manifest.Finding{Origin: p.Mentioned}).Origin,
		}
		if old, ok := bySource(images(base), p.Source); ok && old.Digest != p.Digest {
			bump.From = old.Version
			all = append(all, bump)
		} else if u, ok := unreadOf(base, p.Source); ok && p.Kind != crossplane.Function {
			bump.Unknown = "before this commit " + u.Err.Error()
			all = append(all, bump)
		}
	}
	for _, u := range want.Unread {
		if before, ok := unreadOf(base, u.Source); ok && before.Wanted == u.Wanted {
			continue // the commit does not change this package
		}
		if len(u.Installers) > 0 && !slices.ContainsFunc(u.Installers, func(by manifest.ID) bool { return by.Kind != crossplane.Function }) {
			continue // a function holds no definitions
		}
		bump := plan.Bump{Source: u.Source, Origin: want.Placed(manifest.Finding{Origin: u.Origin}).Origin, Unknown: u.Err.Error()}
		if old, ok := bySource(base.Packages, u.Source); ok {
			bump.From = old.Version
		}
		all = append(all, bump)
	}
	all = claimed(all, base, want)
	slices.SortFunc(all, func(a, b plan.Bump) int { return a.Origin.Compare(b.Origin) })
	return all
}

func bySource(all []catalogue.Package, source string) (catalogue.Package, bool) {
	i := slices.IndexFunc(all, func(p catalogue.Package) bool { return p.Pulled() && p.Source == source })
	if i < 0 {
		return catalogue.Package{}, false
	}
	return all[i], true
}

func unreadOf(of render.Desired, source string) (catalogue.Unread, bool) {
	i := slices.IndexFunc(of.Unread, func(u catalogue.Unread) bool { return u.Source == source })
	if i < 0 {
		return catalogue.Unread{}, false
	}
	return of.Unread[i], true
}

// successor returns the package that replaces one of the base with another image.
func successor(all []catalogue.Package, old catalogue.Package) (catalogue.Package, bool) {
	p, ok := bySource(all, old.Source)
	return p, ok && p.Digest != old.Digest
}

// takesPlace reports whether a package replaces another image.
func takesPlace(base []catalogue.Package, now catalogue.Package) bool {
	_, ok := successor(base, now)
	return ok
}

// notesOnUpgrades returns surprising consequences of new package versions that the effects do not show.
func notesOnUpgrades(seen plan.Observed) []manifest.Finding {
	var found []manifest.Finding
	for _, b := range seen.Bumps {
		switch {
		case b.Unknown == "":
		case b.From != "" && b.To != "":
			found = append(found, manifest.Finding{Rule: ruleUpgradeBroken, Severity: manifest.Warning, Origin: b.Origin, Message: b.Unknown})
		case b.To != "":
			found = append(found, manifest.Finding{
				Rule: ruleUpgradeUnseen, Severity: manifest.Warning, Origin: b.Origin,
				Message: b.Unknown + "; what it holds looks new here, and may not be",
				Fix:     "try again where the registry can be reached",
			})
		} // otherwise rendering reports it
	}
	for _, e := range seen.Effects {
		if e.Of != (manifest.ID{}) {
			continue // a guard holds the update of the package
		}
		breaking := e.Change.Schema().Breaking()
		if i := slices.IndexFunc(breaking, func(c schema.Change) bool { return c.Rule == schema.Scope || c.Rule == schema.Names }); i >= 0 {
			found = append(found, manifest.Finding{
				Rule: ruleUpgradeStuck, Severity: manifest.Warning, Origin: e.Change.Origin,
				Message: fmt.Sprintf("%s changes %s: %s; that is refused for a definition that exists, and nothing of the new version is installed", e.Package, e.On.Name, breaking[i]),
				Fix:     "delete the definition when nothing uses it any more, or stay with the version that is installed",
			})
		}
	}
	return found
}
