package baseline

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
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

// A swap is an object that Crossplane installs, as two commits have it.
type swap struct {
	before, after installed
	effect        plan.Effect
}

// A meaning is what a swap does to the object.
type meaning struct {
	action plan.Action
	cause  plan.Cause
	reason reason.Reason
}

// upgrades returns the packages whose image differs from the base, by the lines that request them, and the objects that
// Crossplane installs with them, by identity. Each of these objects is an effect of the object that names the package.
func (b Baseline) upgrades(want render.Desired) ([]plan.Bump, []plan.Effect) {
	if want.Owner != render.OwnerCrossplane {
		return claimed(nil, b.Base, want), nil
	}
	was, is := withTaken(packaged(b.Base), b.Base), packaged(want)
	bumped, copies := bumps(b.Base, want), standIns(b.Base, want)
	swaps := compared(b.swapped(want, was, is, copies), bumped)
	swaps = append(swaps, dropped(want, was, is, copies)...)

	var effects []plan.Effect
	changed := map[manifest.ID]bool{}
	for _, s := range swaps {
		effects = append(effects, s.effect)
		changed[s.effect.Of] = true
	}
	bumped = append(bumped, unchangedCopies(copies, changed)...)
	slices.SortStableFunc(bumped, func(a, b plan.Bump) int { return a.Origin.Compare(b.Origin) })
	slices.SortFunc(effects, func(a, b plan.Effect) int { return a.On.Compare(b.On) })
	return bumped, effects
}

// withTaken adds the plain objects of a commit, which a package may take over.
func withTaken(all map[manifest.ID]installed, of render.Desired) map[manifest.ID]installed {
	for _, o := range of.Objects {
		if _, known := all[o.ID]; !known {
			all[o.ID] = installed{id: o.ID, object: func() (render.Object, error) { return o, nil }}
		}
	}
	return all
}

// swapped returns the objects that another image installs, by identity. It does not compare them.
func (b Baseline) swapped(want render.Desired, was, is map[manifest.ID]installed, copies map[manifest.ID]standIn) (all []swap) {
	for _, id := range slices.SortedFunc(maps.Keys(is), manifest.ID.Compare) {
		now := is[id]
		old, known := was[id]
		by, stands := now.standIn(copies)
		switch {
		case stands && known:
			all = append(all, swapOf(want, meaning{action: plan.Update, cause: plan.Commit}, old, now, by))
		case !now.of.Pulled(), known && old.of.Digest == now.of.Digest:
		case known && (old.isOutline() || now.isOutline()): // an inactive definition that is only partly known
		case known:
			all = append(all, swapOf(want, meaning{action: plan.Update, cause: plan.Commit}, old, now, now.of))
		case takesPlace(images(b.Base), now.of):
			all = append(all, swapOf(want, meaning{action: plan.Create, cause: plan.Commit}, old, now, now.of))
		}
	}
	return all
}

// compared compares the objects of updates, and returns the swaps that change something. It records in bumped which packages could
// not be compared.
func compared(all []swap, bumped []plan.Bump) []swap {
	failed := make([]error, len(all))
	manifest.Each(len(all), func(i int) {
		if s := all[i]; s.effect.Change.Action == plan.Update {
			_, copied := s.after.copied()
			var write plan.Write
			write, failed[i] = replacing(s.before, s.after, copied)
			all[i].effect = s.effect.Writing(write)
		}
	})
	for i, err := range failed {
		if e := all[i].effect; err != nil && e.Change.Serves {
			unknown(bumped, e, err)
		}
	}
	return slices.DeleteFunc(all, func(s swap) bool { return s.effect.Change.Action == plan.Update && s.effect.Change.Live == nil })
}

// dropped returns the objects that a new image of their package no longer installs. They stay in the cluster.
func dropped(want render.Desired, was, is map[manifest.ID]installed, copies map[manifest.ID]standIn) (all []swap) {
	stays := map[manifest.ID]bool{}
	for _, o := range want.Objects {
		stays[o.ID] = true
	}
	for id, old := range was {
		if _, kept := is[id]; kept || stays[id] {
			continue
		}
		by, replaced := old.standIn(copies)
		if !replaced {
			by, replaced = successor(images(want), old.of)
		}
		if !replaced {
			continue
		}
		why := reason.NotUpdatedAnyMore.With()
		if old.definition != nil {
			why = reason.KindDropped.With()
		}
		gone := swapOf(want, meaning{plan.Keep, plan.Retain, why}, old, old, by)
		gone.effect.Because = nil
		all = append(all, gone)
	}
	return all
}

// swapOf returns a swap, which is an effect of the object that names the package.
func swapOf(want render.Desired, as meaning, before, after installed, by catalogue.Package) swap {
	change := plan.Step{
		Action: as.action, Cause: as.cause, Judged: plan.Judged{Reason: as.reason}, ID: after.id, APIVersion: after.apiVersion,
		Origin:     want.Placed(manifest.Finding{Origin: by.Mentioned}).Origin,
		Definition: after.definition != nil,
		Serves:     after.definition == nil || before.definition != nil && before.definition.Active,
	}
	e := plan.Effect{Kind: plan.Install, Of: by.Named, On: after.id, Package: by.Directory, Change: &change}
	if after.definition != nil {
		e.Because = after.definition.Reasons
	}
	return swap{before, after, e}
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
		return facts.Replacement(r.live(), r.after(), difference, converted(whole)), nil
	}
	return facts.Replacement(r.live(), r.after(), r.Difference, whole), nil
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
func notesOnUpgrades(seen facts.Observed) []manifest.Finding {
	var found []manifest.Finding
	for _, b := range seen.Bumps {
		switch {
		case b.Unknown == "":
		case b.From != "" && b.To != "":
			found = append(found, manifest.Finding{Rule: ruleUpgradeBroken, Severity: manifest.Warning, Origin: b.Origin, About: manifest.About{Subject: b.Source}, Message: b.Unknown})
		case b.To != "":
			found = append(found, manifest.Finding{
				Rule: ruleUpgradeUnseen, Severity: manifest.Warning, Origin: b.Origin, About: manifest.About{Subject: b.Source},
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
				Rule: ruleUpgradeStuck, Severity: manifest.Warning, Origin: e.Change.Origin, About: manifest.About{Object: e.On},
				Message: fmt.Sprintf("%s changes %s: %s; that is refused for a definition that exists, and nothing of the new version is installed", e.Package, e.On.Name, breaking[i]),
				Fix:     "delete the definition when nothing uses it any more, or stay with the version that is installed",
			})
		}
	}
	return found
}
