package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// handsOver asks to look at a merge that changes who makes the CRDs in a new cluster. Passes keep the owner of an earlier pass.
func handsOver(isSet bool) func(draft.Case) []plan.Ruling {
	return func(c draft.Case) []plan.Ruling {
		base := baseOf(c)
		before, after := base.Given, c.Want.Given
		if isSet || len(base.Definitions) == 0 || (before == nil) == (after == nil) {
			return nil
		}
		if after == nil {
			return handover(reason.LastForCrossplane, before, manifest.Origin{}, base.Owner)
		}
		return handover(reason.FirstForCrossplane, after, after.Origin, base.Owner)
	}
}

func handover(code reason.Code, gives *render.Given, at manifest.Origin, owner render.Owner) []plan.Ruling {
	r := looks(code.With(gives.Kind, gives.Name, string(owner)))
	r.At = []manifest.Origin{at}
	return []plan.Ruling{r}
}
