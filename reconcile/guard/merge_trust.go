package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/impact"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// trusts asks to look at programs that Crossplane installs: packages that are new, and new versions that no rule trusts.
func trusts(rules []impact.Trust) func(draft.Case) []plan.Ruling {
	return func(c draft.Case) []plan.Ruling {
		t := trust{c, rules, slices.Clone(baseOf(c).Packages)}
		for _, b := range baseOf(c).Beside {
			t.base = append(t.base, b.Package)
		}
		return slices.Concat(t.bumps(), t.steps(), t.dependencies())
	}
}

type trust struct {
	draft.Case
	rules []impact.Trust
	base  []catalogue.Package
}

// bumps rules on the packages whose images differ.
func (t trust) bumps() []plan.Ruling {
	var all []plan.Ruling
	for _, b := range t.Bumps {
		if b.Unknown != "" {
			continue // the guard unread rules
		}
		kind := b.By.Kind
		if i := slices.IndexFunc(t.Want.Packages, func(p catalogue.Package) bool { return p.Source == b.Source }); i >= 0 {
			kind = t.Want.Packages[i].Kind
		}
		all = append(all, t.version(kind, b.Source, b.From, b.To, b.By, b.Origin))
	}
	return all
}

// version rules on a new version of a package.
func (t trust) version(kind, source, from, to string, by manifest.ID, at manifest.Origin) plan.Ruling {
	name, bump := crossplane.ImageName(source), impact.BumpOf(from, to)
	r := looks(reason.UntrustedVersion.With(name, from, to, string(bump)))
	if impact.Trusted(t.rules, kind, bump) {
		r = noted(reason.TrustedVersion.With(name, from, to))
	}
	r.Of, r.At = by, []manifest.Origin{at}
	return r
}

// steps rules on the objects that install packages.
func (t trust) steps() []plan.Ruling {
	var all []plan.Ruling
	for _, s := range t.Steps {
		if crossplane.IsPackage(s.ID) && applied(s) {
			if r := t.step(s); !r.Reason.None() {
				all = append(all, r)
			}
		}
	}
	return all
}

func (t trust) step(s plan.Step) plan.Ruling {
	before, after, known := contents(s)
	if !known {
		return allowed
	}
	source, version := crossplane.SplitImage(imageIn(after))
	var r plan.Ruling
	switch {
	case slices.ContainsFunc(t.Want.Unread, func(u catalogue.Unread) bool { return u.Source == source }):
		return allowed // the guard unread rules
	case before == nil:
		r = looks(reason.NewPackage.With(crossplane.ImageName(source), version))
	case imageIn(before) == imageIn(after):
		return allowed
	default:
		from, old := crossplane.SplitImage(imageIn(before))
		switch {
		case from != source:
			r = looks(reason.OtherSource.With(s.ID, from, source))
		case slices.ContainsFunc(t.Bumps, func(b plan.Bump) bool { return b.Source == source }), t.isSame(source):
			return allowed
		case s.ID.Kind != crossplane.Function && !t.isRead(source):
			r = looks(reason.UntrustedVersion.With(crossplane.ImageName(source), old, version, string(impact.Unread)))
		default:
			return t.version(s.ID.Kind, source, old, version, s.ID, s.Origin)
		}
	}
	r.Of, r.At = s.ID, []manifest.Origin{s.Origin}
	return r
}

// isSame reports whether both commits have the same image of a package, of which only the tag differs.
func (t trust) isSame(source string) bool {
	return slices.ContainsFunc(t.Want.Packages, func(p catalogue.Package) bool {
		return p.Source == source && p.Pulled() && slices.ContainsFunc(t.base, func(b catalogue.Package) bool { return b.Source == source && b.Digest == p.Digest })
	})
}

// isRead reports whether the content of a package is known, so that its definitions were compared.
func (t trust) isRead(source string) bool {
	return slices.ContainsFunc(t.Want.Packages, func(p catalogue.Package) bool { return p.Source == source && p.Pulled() })
}

// dependencies rules on packages that come only with another one.
func (t trust) dependencies() []plan.Ruling {
	var all []plan.Ruling
	for _, p := range t.Want.Packages {
		known := slices.ContainsFunc(t.base, func(b catalogue.Package) bool { return b.Source == p.Source }) ||
			slices.ContainsFunc(baseOf(t.Case).Unread, func(u catalogue.Unread) bool { return u.Source == p.Source })
		if p.Pulled() && p.Named == (manifest.ID{}) && !known {
			r := looks(reason.NewPackage.With(crossplane.ImageName(p.Source), p.Version))
			r.At = []manifest.Origin{p.Mentioned}
			all = append(all, r)
		}
	}
	return all
}

func imageIn(object *unstructured.Unstructured) string {
	image, _, _ := unstructured.NestedString(object.Object, "spec", "package")
	return image
}
