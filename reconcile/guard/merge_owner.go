package guard

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// The codes of the guard owner on merges.
const (
	FirstForCrossplane plan.Code = "FirstForCrossplane" // the object because of which Crossplane makes the CRDs in a new cluster, and who makes them now
	LastForCrossplane  plan.Code = "LastForCrossplane"  // the object without which Headgate makes the CRDs in a new cluster, and who makes them now
)

// handsOver asks to look at a merge that changes who makes the CRDs in a new cluster. Passes keep the owner of an earlier pass.
func handsOver(isSet bool) func(plan.Case) []plan.Ruling {
	return func(c plan.Case) []plan.Ruling {
		base := baseOf(c)
		before, after := base.Given, c.Want.Given
		if isSet || len(base.Definitions) == 0 || (before == nil) == (after == nil) {
			return nil
		}
		if after == nil {
			return handover(LastForCrossplane, before, manifest.Origin{}, base.Owner)
		}
		return handover(FirstForCrossplane, after, after.Origin, base.Owner)
	}
}

func handover(code plan.Code, gives *render.Given, at manifest.Origin, owner render.Owner) []plan.Ruling {
	r := looks(code.With(gives.Kind, gives.Name, string(owner)))
	r.At = []manifest.Origin{at}
	return []plan.Ruling{r}
}
