package guard

import (
	"cmp"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An AllowedKind selects objects that a sync may apply and prune. All texts are patterns in the syntax of policies.
type AllowedKind struct {
	Group, Kind string
	Cluster     bool     // cluster-scoped objects; otherwise objects in namespaces
	Namespaces  []string // of the objects; all if empty
	Names       []string // of the objects; all if empty
}

// An ActivationLimit limits what a sync may activate.
type ActivationLimit struct {
	Set   bool     // otherwise the sync may activate everything
	Allow []string // patterns for the names of definitions
}

// onlyAllowed holds objects that the sync may not apply or prune, whatever other guards decide. The Sync is not configured by the
// author of the commit, so no approval helps.
func onlyAllowed(kinds []AllowedKind) draft.Rule {
	return func(c draft.Case) func(plan.Step) plan.Ruling {
		namespaceOf := c.Seen.Namespaces()
		return func(s plan.Step) plan.Ruling {
			if len(kinds) == 0 || s.OnlyFrees() {
				return allowed
			}
			namespace, known := namespaceOf(s.ID)
			why := notListed(kinds, s.ID, namespace, known)
			switch {
			case why.None():
				return allowed
			case s.Action == plan.Prune:
				return held(reason.PruneNotAllowed.With(why))
			}
			return held(reason.ApplyNotAllowed.With(why))
		}
	}
}

// Allows returns a function that reports whether allowedKinds allows the sync to apply an object.
func (g Guarding) Allows(seen facts.Observed) func(manifest.ID) bool {
	namespaceOf := seen.Namespaces()
	return func(id manifest.ID) bool {
		if len(g.AllowedKinds) == 0 {
			return true
		}
		namespace, known := namespaceOf(id)
		return notListed(g.AllowedKinds, id, namespace, known).None()
	}
}

// Reads returns a function that reports whether references may read an object, for plan.Terms: only what allowedKinds allows, because
// a reference makes the object's values visible in the namespaces of the sync. If references.namespaces is set, it replaces the
// namespaces of allowedKinds.
func Reads(kinds []AllowedKind, namespaces []string) func(id manifest.ID, namespace string, known bool) bool {
	if len(namespaces) > 0 {
		kinds = readFrom(namespaces, kinds)
	}
	if len(kinds) == 0 {
		return nil
	}
	return func(id manifest.ID, namespace string, known bool) bool {
		return notListed(kinds, id, namespace, known).None()
	}
}

// readFrom returns the entries with other namespaces. Without entries, every kind is allowed.
func readFrom(namespaces []string, kinds []AllowedKind) []AllowedKind {
	if len(kinds) == 0 {
		kinds = []AllowedKind{{Group: "*", Kind: "*"}, {Group: "*", Kind: "*", Cluster: true}}
	}
	kinds = slices.Clone(kinds)
	for i := range kinds {
		if !kinds[i].Cluster {
			kinds[i].Namespaces = namespaces
		}
	}
	return kinds
}

// notListed returns why no entry selects an object; no reason if one does. If the scope of the kind is unknown, no API serves it
// and nothing is sent, so entries of both scopes count.
func notListed(kinds []AllowedKind, id manifest.ID, namespace string, known bool) reason.Reason {
	name := id.Kind
	if id.Group != "" {
		name += "." + id.Group
	}
	why := reason.KindNotListed.With(name)
	for _, k := range kinds {
		if !crossplane.Matches(k.Group, id.Group) || !crossplane.Matches(k.Kind, id.Kind) {
			continue
		}
		inNamespace := namespace != ""
		switch {
		case known && k.Cluster && inNamespace, inNamespace && !matchesAny(k.Namespaces, namespace):
			why = reason.NamespaceNotListed.With(name, namespace)
		case known && !k.Cluster && !inNamespace:
			why = reason.ScopeNotListed.With(name)
		case !matchesAny(k.Names, id.Name):
			why = reason.NameNotListed.With(name, id.Name)
		default:
			return reason.Reason{}
		}
	}
	return why
}

// matchesAny reports whether one of the patterns matches. Without patterns, everything matches.
func matchesAny(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return crossplane.Matches(p, text) })
}

// onlyActivates holds every step with which a commit would activate a definition or serve a kind that activation.allow of the Sync
// does not match. It judges a policy by its patterns and not only by today's definitions, because a policy is in force for the
// whole cluster, even when another team installs a package later.
func onlyActivates(limit ActivationLimit) draft.Rule {
	return func(c draft.Case) func(plan.Step) plan.Ruling {
		a := &activating{floodingOf(c, 0), limit}
		return func(s plan.Step) plan.Ruling {
			if !limit.Set {
				return allowed
			}
			return a.rule(s)
		}
	}
}

// activating is the state of onlyActivates for one plan. It counts activations as the guard flood does.
type activating struct {
	*flooding
	ActivationLimit
}

func (a *activating) rule(s plan.Step) plan.Ruling {
	switch {
	case crossplane.IsMRAP(s.ID):
		return a.policy(s)
	case s.Definition:
		return a.definition(s)
	case s.ID.IsCRD():
		return a.crd(s)
	case crossplane.IsPackage(s.ID):
		return a.pkg(s)
	case s.ID.Group == crossplane.Packages:
		return a.besidePackages(s)
	}
	return allowed
}

// permits reports whether the limit allows a definition.
func (a *activating) permits(name string) bool {
	return slices.ContainsFunc(a.Allow, func(glob string) bool { return crossplane.Matches(glob, name) })
}

// listed returns the limit as text for a reason.
func (a *activating) listed() string { return cmp.Or(strings.Join(a.Allow, ", "), "nothing") }

// policy judges a policy by its patterns. It ignores whether the policy is paused, because removing an annotation would put it in
// force.
func (a *activating) policy(s plan.Step) plan.Ruling {
	u, err := s.Object()
	if err != nil {
		return a.unchecked(s, err)
	}
	globs, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "activate") // the API server refuses other types
	if glob := a.tooWide(globs); glob != "" {
		return held(a.whyTooWide(glob))
	}
	return allowed
}

// tooWide returns the first pattern that matches more than the limit; "" if none does.
func (a *activating) tooWide(globs []string) string {
	i := slices.IndexFunc(globs, func(glob string) bool { return !crossplane.Covers(a.Allow, glob) })
	if i < 0 {
		return ""
	}
	return globs[i]
}

func (a *activating) whyTooWide(glob string) reason.Reason {
	opens := func(name string) bool { return crossplane.Matches(glob, name) && !a.permits(name) }
	for _, d := range a.Want.Definitions {
		if opens(d.Name) {
			return reason.PatternOpens.With(glob, a.listed(), d.Name)
		}
	}
	example := ""
	for name := range a.Seen.Upstream.Definitions {
		if opens(name) && (example == "" || name < example) {
			example = name
		}
	}
	if example != "" {
		return reason.PatternOpens.With(glob, a.listed(), example)
	}
	return reason.PatternTooWide.With(glob, a.listed())
}

// definition judges the CRD of a definition, and an MRD whose own state makes it active.
func (a *activating) definition(s plan.Step) plan.Ruling {
	if opens := s.Action == plan.Create && s.ID.IsCRD() || s.Activates; opens && !a.permits(s.ID.Name) {
		return held(reason.DefinitionOpens.With(a.listed()))
	}
	return allowed
}

// crd judges a CRD that the commit declares itself. It serves a kind just as an activation does, and a provider with safe-start
// begins to reconcile it. A provider's ProviderConfigs are exempt, because they are not managed resources.
func (a *activating) crd(s plan.Step) plan.Ruling {
	if s.Action != plan.Create || a.permits(s.ID.Name) {
		return allowed
	}
	for _, o := range a.Want.Objects {
		if o.ID == s.ID && o.Package != "" && (crossplane.Version{}).Exempts(o.Serves.Kind) {
			return allowed
		}
	}
	return held(reason.CRDOpens.With(a.listed()))
}

// pkg judges a package by the definitions that Crossplane activates: because the package has no safe-start, because of a policy in
// force, or because of a policy in the package.
func (a *activating) pkg(s plan.Step) plan.Ruling {
	force := a.policies()
	definitions, _ := a.definitionsOf(s.ID)
	var opened []string
	for _, d := range definitions {
		if a.isOpen(d.Name) || a.permits(d.Name) {
			continue
		}
		if isActiveByItself(d) || force.Matching(d.Name) != "" {
			opened = append(opened, d.Name)
		}
	}
	if len(opened) > 0 {
		return held(reason.PackageOpens.With(len(opened), opened[0], a.listed()))
	}
	for _, p := range a.shippedBy(s.ID) {
		if glob := a.tooWide(globsOf(p)); glob != "" {
			return held(reason.PackageShipsPolicy.With(p.Name, glob, a.listed()))
		}
	}
	// A Function has no definitions, but a package that it depends on may.
	if why := a.whyNotJudged(s.ID); !a.isInstalled(s) && !why.None() {
		return held(reason.PackageNotJudged.With(why))
	}
	return a.pinned(s)
}

// whyNotJudged returns why it is not known what the image of a package holds; no reason if it is. Where Crossplane installs the image,
// a copy in the tree does not count: its author could write anything into it. Crossplane installs no definitions of a Function.
func (a *activating) whyNotJudged(id manifest.ID) reason.Reason {
	if why := a.whyUnread(id); !why.None() {
		return why
	}
	_, _, digest := a.Want.Installs(id)
	if digest == "" && a.Want.Owner == render.OwnerCrossplane && id.Kind != crossplane.Function {
		return reason.PackageNotRead.With(id.Kind, id.Name)
	}
	return reason.Reason{}
}

// pinned holds a package if Crossplane installs something for it that the commit does not name: the image behind a tag, or a version
// of a dependency that Crossplane chooses. Otherwise Headgate would judge one image, and Crossplane could install another.
func (a *activating) pinned(s plan.Step) plan.Ruling {
	u, err := s.Object()
	if err != nil {
		return a.unchecked(s, err)
	}
	spec := specOf(u)
	image, _ := spec["package"].(string)
	source, version := crossplane.SplitImage(image)
	_, _, digest := a.Want.Installs(s.ID)
	switch {
	case !crossplane.IsDigest(version):
		return held(reason.PackageUnpinned.With(crossplane.Image(source, cmp.Or(digest, "sha256:DIGEST"))))
	case spec["packagePullPolicy"] == crossplane.PullAlways, specOf(s.After)["packagePullPolicy"] == crossplane.PullAlways: // of another manager
		return held(reason.PackagePullsAlways.With())
	case spec["skipDependencyResolution"] != true:
		return held(reason.PackageResolves.With())
	}
	if undeclared := a.undeclared(s.ID); undeclared != "" {
		return held(reason.PackageDependsOn.With(undeclared))
	}
	return allowed
}

// specOf returns the spec of an object, which may be nil.
func specOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	spec, _ := u.Object["spec"].(map[string]any)
	return spec
}

// undeclared returns the dependencies of a package that no object and no package in the tree of the commit declares; "" if there are
// none.
func (a *activating) undeclared(id manifest.ID) string {
	declared := map[string]bool{}
	for _, o := range a.Want.Objects {
		if !crossplane.IsPackage(o.ID) {
			continue
		}
		if u, err := o.Content(); err == nil { // the object's own step is held otherwise
			source, _ := crossplane.SplitImage(packageImage(u))
			declared[source] = true
		}
	}
	var all []string
	for _, p := range a.installedDirectly(id) {
		for _, dep := range p.Depends {
			inTree := slices.ContainsFunc(a.Want.Packages, func(p catalogue.Package) bool { return p.Called(dep.Kind, dep.Source) })
			if !declared[dep.Source] && !inTree {
				all = append(all, dep.Source)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// installedDirectly returns the packages that an object names, without their dependencies.
func (a *activating) installedDirectly(id manifest.ID) []catalogue.Package {
	var all []catalogue.Package
	for _, of := range a.Want.Beside {
		if of.Package.Named == id {
			all = append(all, of.Package)
		}
	}
	for _, p := range a.Want.Packages {
		if p.Named == id || !p.Pulled() && p.Installer == id {
			all = append(all, p)
		}
	}
	return all
}

// isActiveByItself reports whether a definition is active regardless of policies.
func isActiveByItself(d render.DecidedDefinition) bool {
	return isUnrestricted(d) || d.State == catalogue.Active
}

func globsOf(p catalogue.Policy) []string {
	var globs []string
	for _, pattern := range p.Patterns {
		globs = append(globs, pattern.Glob)
	}
	return globs
}

// besidePackages judges other objects that the package manager reads. An ImageConfig can replace the image of every package in the
// cluster. What a kind of a later Crossplane version installs is not known.
func (a *activating) besidePackages(s plan.Step) plan.Ruling {
	switch {
	case crossplane.IsImageConfig(s.ID):
		u, err := s.Object()
		if err != nil {
			return a.unchecked(s, err)
		}
		if _, rewrites, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "rewriteImage"); rewrites {
			return held(reason.RewritesImages.With())
		}
		return allowed
	case crossplane.ConfiguresRuntime(s.ID):
		return allowed
	}
	return held(reason.BehindPackages.With(s.ID.Kind))
}

// unchecked holds a step whose object cannot be read. If the step sends nothing, it is allowed.
func (a *activating) unchecked(s plan.Step, err error) plan.Ruling {
	if s.Err != nil {
		return allowed
	}
	return held(reason.ActivationUnchecked.With(err.Error()))
}
