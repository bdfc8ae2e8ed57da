package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// dropped blocks the merge of a package that does not contain a served kind any more, unless nothing uses the kind.
func dropped(s plan.Step, c draft.Case) plan.Ruling {
	switch {
	case !applied(s), s.Action != plan.Keep, !s.Serves:
		return allowed
	case isUnused(s, c) && gives(s, reason.NoObjects):
		return looks(reason.DropsUnusedKind.With(s.ID.Name))
	}
	return claiming(s, c.Installer(s), reason.DropsKind.With(s.ID.Name))
}
