package guard

import (
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
)

// deletesKind blocks the merge of a prune that deletes a kind of which no cluster shows whether objects exist.
func deletesKind(s plan.Step, _ draft.Case) plan.Ruling {
	switch {
	case !applied(s), s.Action != plan.Prune, !crossplane.DeclaresKind(s.ID), crossplane.IsMRD(s.ID) && !s.Serves:
		return allowed
	case !gives(s, reason.UsersUnseen, reason.UsersNotCounted, reason.UsersUnknown):
		return allowed
	}
	r := held(reason.DeletesKind.With(s.ID.Name))
	r.Claims = []approval.Ask{s.ClaimAs(InUse, "", s.Action)}
	return r
}

// deletes asks to look at every other deletion.
func deletes(s plan.Step, c draft.Case) plan.Ruling {
	switch {
	case !applied(s), s.Action != plan.Prune:
		return allowed
	case s.Deactivates:
		return looks(reason.DeactivatesKind.With(s.ID.Name))
	case s.Deleting, s.Lingers(), isRenamed(s, c):
		return allowed
	}
	return looks(reason.DeletesObject.With(s.ID))
}
