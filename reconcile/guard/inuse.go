package guard

import (
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// inUse holds what live objects would go with, or would be broken without.
func inUse(s plan.Step, c plan.Case) plan.Ruling {
	if !hasDependents(s.ID) {
		return allowed
	}
	going, all := c.Users(s.ID)
	if all && !slices.ContainsFunc(going, func(by plan.Step) bool { return by.Action != plan.Prune }) {
		return noted(text("%s of it go first", plan.Plural(int64(len(going)), "object")))
	}
	format := "%s would be deleted with it%s; delete them first"
	switch s.ID.Kind {
	case crossplane.KindComposition.Kind, crossplane.Function:
		format = "%s would be broken without it%s; have them use another one, or delete them first"
	case crossplane.Configuration: // its XRDs go, and its Compositions
		format = "%s would be deleted, or broken, without it%s; delete them first"
	}
	r := counted(plan.Question{Ask: plan.Dependents, Of: s.ID}, c, format, "live object", going...)
	r.Clears = plan.ClearsWithOther
	return r
}

// hasDependents says whether deleting an object of the kind takes others along.
func hasDependents(id manifest.ID) bool {
	switch {
	case id.IsCRD(), crossplane.IsMRD(id), crossplane.IsXRD(id), crossplane.IsComposition(id), crossplane.IsPackage(id):
		return true
	}
	return id.Kind == "ProviderConfig" || id.Kind == "ClusterProviderConfig"
}

// counted rules by a count, and holds what could not be counted. The example is none of those that
// go themselves, if it can be helped.
func counted(q plan.Question, c plan.Case, format, noun string, going ...plan.Step) plan.Ruling {
	a, ok := c.Seen.Answers[q]
	switch {
	case !ok && c.Seen.Offline:
		return plan.Ruling{Reason: text("what would be deleted with it is not known without a cluster; a pass holds it while that is anything"), Needs: []plan.Question{q}}
	case !ok:
		r := held(text("it has not been counted what would be deleted with it"))
		r.Needs = []plan.Question{q}
		return r
	case a.Unknown != "":
		return held(text("what would be deleted with it cannot be counted (%s), so it counts as in use", a.Unknown))
	case a.Count > 0:
		stays := slices.IndexFunc(a.These, func(id manifest.ID) bool {
			return !slices.ContainsFunc(going, func(s plan.Step) bool { return s.ID == c.Seen.AsWritten(id) })
		})
		if stays >= 0 && len(going) > 0 {
			id := a.These[stays]
			a.Example = id.Kind + " " + strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
		}
		return held(text(format, plan.Plural(a.Count, noun), plan.Example(a)))
	}
	return allowed
}
