package guard

import (
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
)

// The codes of prunes on merges.
const (
	DeletesKind     reason.Code = "DeletesKind"     // the definition of a kind whose use is not known
	DeletesObject   reason.Code = "DeletesObject"   // the object
	DeactivatesKind reason.Code = "DeactivatesKind" // the definition
)

// deletesKind blocks the merge of a prune that deletes a kind of which no cluster shows whether objects exist.
func deletesKind(s plan.Step, _ draft.Case) plan.Ruling {
	switch {
	case !applied(s), s.Action != plan.Prune, !crossplane.DeclaresKind(s.ID), crossplane.IsMRD(s.ID) && !s.Serves:
		return allowed
	case !gives(s, UsersUnseen, UsersNotCounted, UsersUnknown):
		return allowed
	}
	r := blocks(DeletesKind.With(s.ID.Name))
	r.Claims = []approval.Ask{s.ClaimAs(InUse, "", s.Action)}
	return r
}

// deletes asks to look at every other deletion.
func deletes(s plan.Step, _ draft.Case) plan.Ruling {
	switch {
	case !applied(s), s.Action != plan.Prune:
		return allowed
	case s.Deactivates:
		return looks(DeactivatesKind.With(s.ID.Name))
	case s.Deleting, s.Lingers():
		return allowed
	}
	return looks(DeletesObject.With(s.ID))
}
