package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// inUse holds the prune of an object if live objects would be deleted with it or would break without it.
func inUse(s plan.Step, c draft.Case) plan.Ruling {
	if !hasDependents(s.ID) {
		return allowed
	}
	going, all := c.Users(s.ID)
	if all && !slices.ContainsFunc(going, func(by plan.Step) bool { return by.Action != plan.Prune }) {
		return noted(reason.UsersGoFirst.With(len(going)))
	}
	code := reason.DeletesObjects
	switch s.ID.Kind {
	case crossplane.KindComposition.Kind, crossplane.Function:
		code = reason.BreaksUsers
	case crossplane.Configuration: // its XRDs are deleted with it, and its Compositions
		code = reason.DeletesOrBreaksUsers
	}
	r := counted(question.Dependents{Of: s.ID}, c, code, going...)
	r.Clears = plan.ClearsWithOther
	return r
}

// hasDependents reports whether deleting an object of this kind deletes or breaks other objects.
func hasDependents(id manifest.ID) bool {
	switch {
	case id.IsCRD(), crossplane.IsMRD(id), crossplane.IsXRD(id), crossplane.IsComposition(id), crossplane.IsPackage(id):
		return true
	}
	return id.Kind == "ProviderConfig" || id.Kind == "ClusterProviderConfig"
}

// counted rules by a count. It holds the step with code if the count is above zero, or if there is no count. If possible, the
// example is an object that is not going to be deleted itself.
func counted(q question.Of[question.Counted], c draft.Case, code reason.Code, going ...plan.Step) plan.Ruling {
	a, is := question.Get(c.Seen.Known(), q)
	switch {
	case is.Unseen:
		return noted(reason.UsersUnseen.With())
	case is.Open:
		return held(reason.UsersNotCounted.With())
	case is.Err != nil:
		return held(reason.UsersUnknown.With(reason.Of(is.Err)))
	case a.Count > 0:
		stays := slices.IndexFunc(a.These, func(id manifest.ID) bool {
			return !slices.ContainsFunc(going, func(s plan.Step) bool { return s.ID == c.Seen.AsWritten(id) })
		})
		if stays >= 0 && len(going) > 0 {
			a.Example = a.These[stays].Brief()
		}
		return held(code.With(a.Count, a.Example))
	}
	return allowed
}
