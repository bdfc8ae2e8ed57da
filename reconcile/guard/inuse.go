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

// The codes of the guards in use and others inside.
const (
	UsersGoFirst          reason.Code = "UsersGoFirst"          // how many objects are deleted before it
	DeletesObjects        reason.Code = "DeletesObjects"        // how many live objects would be deleted with it, and an example
	BreaksUsers           reason.Code = "BreaksUsers"           // how many live objects would be broken without it, and an example
	DeletesOrBreaksUsers  reason.Code = "DeletesOrBreaksUsers"  // how many live objects would be deleted or broken without it, and an example
	DeletesForeignObjects reason.Code = "DeletesForeignObjects" // how many objects of others would be deleted with the namespace, and an example
	UsersUnseen           reason.Code = "UsersUnseen"           // no cluster shows what would be deleted with it
	UsersNotCounted       reason.Code = "UsersNotCounted"       // what would be deleted with it has not been counted yet
	UsersUnknown          reason.Code = "UsersUnknown"          // why what would be deleted with it cannot be counted
)

// inUse holds the prune of an object if live objects would be deleted with it or would break without it.
func inUse(s plan.Step, c draft.Case) plan.Ruling {
	if !hasDependents(s.ID) {
		return allowed
	}
	going, all := c.Users(s.ID)
	if all && !slices.ContainsFunc(going, func(by plan.Step) bool { return by.Action != plan.Prune }) {
		return noted(UsersGoFirst.With(len(going)))
	}
	code := DeletesObjects
	switch s.ID.Kind {
	case crossplane.KindComposition.Kind, crossplane.Function:
		code = BreaksUsers
	case crossplane.Configuration: // its XRDs are deleted with it, and its Compositions
		code = DeletesOrBreaksUsers
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
	case is.Open && c.Seen.Stance.In(plan.OnCommit):
		return noted(UsersUnseen.With())
	case is.Open:
		return held(UsersNotCounted.With())
	case is.Err != nil:
		return held(UsersUnknown.With(reason.Of(is.Err)))
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
