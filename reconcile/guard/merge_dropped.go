package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// The codes of the guard dropped.
const (
	DropsKind       reason.Code = "DropsKind"       // the kind that may be in use
	DropsUnusedKind reason.Code = "DropsUnusedKind" // the kind
)

// dropped blocks the merge of a package that does not contain a served kind any more, unless nothing uses the kind.
func dropped(s plan.Step, c draft.Case) plan.Ruling {
	switch {
	case !applied(s), s.Action != plan.Keep, !s.Serves:
		return allowed
	case isUnused(s, c) && gives(s, reason.NoObjects):
		return looks(DropsUnusedKind.With(s.ID.Name))
	}
	return claiming(s, c.Installer(s), DropsKind.With(s.ID.Name))
}
