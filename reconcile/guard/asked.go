package guard

import (
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
)

// The codes of the guard asked.
const (
	PolicyKeeps           plan.Code = "PolicyKeeps"           // its management policy
	AnnotationKeeps       plan.Code = "AnnotationKeeps"       // an annotation of the live object and its value
	LabelKeeps            plan.Code = "LabelKeeps"            // a label of the live object and its value
	AsksNotToCreate       plan.Code = "AsksNotToCreate"       // a key and its value in the commit
	AnnotationAsksToLeave plan.Code = "AnnotationAsksToLeave" // an annotation of the live object and its value
	LabelAsksToLeave      plan.Code = "LabelAsksToLeave"      // a label of the live object and its value
	CommitAsksToLeave     plan.Code = "CommitAsksToLeave"     // a key and its value in the commit
)

// asked retains what someone asked us, on the object, never to prune.
func asked(s plan.Step, c plan.Case) plan.Ruling {
	out, asked := ownership.Kept(c.Seen.Inventory.Entries[s.ID].Policy, c.Live(s))
	switch {
	case !asked || s.OnlyFrees():
		return allowed
	case out.Policy != "":
		return retained(PolicyKeeps.With(string(out.Policy)))
	case out.IsLabel:
		return retained(LabelKeeps.With(out.Key, out.Value))
	}
	return retained(AnnotationKeeps.With(out.Key, out.Value))
}

// left retains what someone asked us, on the object or in the commit, not to write. Where it was
// the commit that asked for it, the commit can take it back.
func left(s plan.Step, c plan.Case) plan.Ruling {
	live := c.Live(s)
	for _, be := range render.LeaveBe {
		key, value := be.Key, be.Value
		wanted := ownership.SaysSo(s.Asks, key, value)
		if live == nil {
			if wanted && !be.Made {
				return retained(AsksNotToCreate.With(key, value))
			}
			continue
		}
		annotated, labelled := ownership.SaysSo(live.GetAnnotations(), key, value), ownership.SaysSo(live.GetLabels(), key, value)
		ours := c.Seen.Offline || ownership.SentByUs(live, c.Seen.Inventory.Entries[s.ID].Foreign, annotated, key)
		switch {
		case annotated && (wanted || !ours):
			return retained(AnnotationAsksToLeave.With(key, value))
		case labelled && (wanted || !ours):
			return retained(LabelAsksToLeave.With(key, value))
		case wanted:
			return retained(CommitAsksToLeave.With(key, value))
		}
	}
	return allowed
}
