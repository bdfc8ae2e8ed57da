package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
)

// takenOver retains an object that another sync of the process takes over.
func takenOver(s plan.Step, c draft.Case) plan.Ruling {
	if to, moves := c.Seen.TakenOverBy(s.ID); moves && !s.OnlyFrees() && !s.Deactivates {
		return retained(reason.TakenOverBySync.With(to.String()))
	}
	return allowed
}

// asked retains an object that must never be pruned, according to its settings.
func asked(s plan.Step, c draft.Case) plan.Ruling {
	out, asked := ownership.Kept(c.Seen.Inventory.Entries[s.ID].Policy, c.Live(s))
	switch {
	case !asked || s.OnlyFrees():
		return allowed
	case out.Policy != "":
		return retained(reason.PolicyKeeps.With(string(out.Policy)))
	case out.IsLabel:
		return retained(reason.LabelKeeps.With(out.Key, out.Value))
	}
	return retained(reason.AnnotationKeeps.With(out.Key, out.Value))
}

// replaces lists the settings with which an object asks Flux or Argo CD to replace it instead of applying it.
var replaces = []struct{ key, value string }{
	{render.FluxForceKey, "enabled"},
	{render.ArgoOptionsKey, "Replace=true"},
	{render.ArgoOptionsKey, "Force=true"},
}

// left retains an object that Headgate must not write, according to a setting on the live object or in the commit. A setting in the
// commit can be removed there. left holds an object with a setting to replace it: Headgate only applies, and ignoring the setting
// would deceive the author.
func left(s plan.Step, c draft.Case) plan.Ruling {
	if r := leftAlone(s, c); r.Response() != plan.Allowed {
		return r
	}
	for _, r := range replaces {
		if ownership.SaysSo(c.Asked[s.ID].Asks, r.key, r.value) {
			return held(reason.AsksToReplace.With(r.key, r.value))
		}
	}
	return allowed
}

// leftAlone retains an object that Headgate must not write according to its settings.
func leftAlone(s plan.Step, c draft.Case) plan.Ruling {
	live, seen, asks := c.Live(s), c.Seen, c.Asked[s.ID].Asks
	if to := seen.MovedTo(s.ID); to != "" {
		return retained(reason.MovedAway.With(to))
	}
	for _, be := range render.LeaveBe {
		key, value := be.Key, be.Value
		wanted := ownership.SaysSo(asks, key, value)
		if live == nil {
			if wanted && !be.Made {
				return retained(reason.AsksNotToCreate.With(key, value))
			}
			continue
		}
		annotated, labelled := ownership.SaysSo(live.GetAnnotations(), key, value), ownership.SaysSo(live.GetLabels(), key, value)
		counts := wanted || !seen.SentByUs(s.ID, live, annotated, key) // what an earlier commit set is about to go
		switch {
		case counts && annotated:
			return retained(reason.AnnotationAsksToLeave.With(key, value))
		case counts && labelled:
			return retained(reason.LabelAsksToLeave.With(key, value))
		case wanted:
			return retained(reason.CommitAsksToLeave.With(key, value))
		}
	}
	return allowed
}
