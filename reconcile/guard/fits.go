package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/schema"
)

// clientBreaks are the rules of changes that no object can show: they break clients, or they make all objects unreadable or
// unwritable.
var clientBreaks = []schema.Rule{schema.Removed, schema.Unserved, schema.Subresource, schema.Selectable, schema.Scale, schema.Scope, schema.Names, schema.Default, schema.Refused}

// judging returns the question whether objects fit the new version of a definition. It returns false if objects cannot answer it:
// there is no cluster, the new version is not known, or the change breaks clients.
func judging(s plan.Step, c draft.Case, breaking []schema.Change) (question.Fits, bool) {
	after := s.AfterWhole()
	if !c.Asks() || after == nil ||
		slices.ContainsFunc(breaking, func(b schema.Change) bool { return slices.Contains(clientBreaks, b.Rule) }) {
		return question.Fits{}, false
	}
	q := question.Fits{Of: plan.CRD(s.ID.Name), After: after}
	if crossplane.IsXRD(s.ID) {
		q.Of = s.ID // its claims count, too
	}
	return q, true
}

// fits holds a breaking change if an object of the kind would lose a value or be refused, or if that is not known.
func fits(s plan.Step, c draft.Case, breaking []schema.Change, live question.Counted) plan.Ruling {
	inUse := reason.BreaksInUse.With(breaking, live.Count, live.Example, leavingVersions(breaking))
	most := approval.Count(int(live.Count))
	q, can := judging(s, c, breaking)
	if !can {
		return asks(approval.Breaks, most, inUse)
	}
	a, is := question.Get(c.Seen.Known(), q)
	switch {
	case is.Open:
		return asks(approval.Breaks, most, inUse)
	case is.Err != nil:
		return asks(approval.Breaks, most, reason.BreaksInUseUnknown.With(inUse, reason.Of(is.Err)))
	case a.Count > 0:
		return asks(approval.Breaks, approval.Count(int(a.Count)), reason.BreaksObjects.With(breaking, a.Reasons))
	}
	return noted(reason.BreaksNoObject.With(breaking, live.Count))
}
