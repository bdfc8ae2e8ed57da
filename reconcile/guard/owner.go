package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
)

// owner holds steps that make or delete CRDs if the recorded owner of CRDs differs from the cluster's. It also holds Crossplane's
// objects if this sync makes the CRDs itself.
func owner(isSet bool) func(plan.Step, draft.Case) plan.Ruling {
	return func(s plan.Step, c draft.Case) plan.Ruling {
		natural := c.Seen.Natural
		prunes := s.Action == plan.Prune
		isCrossplanes := s.ID == crossplane.MRAP(s.ID.Name) || s.ID.Group == crossplane.Packages
		makes := s.ID.IsCRD() || crossplane.IsMRD(s.ID)
		concerns := s.Definition || prunes && makes
		switch {
		case natural == "" || natural == c.Want.Owner:
			return allowed
		case c.Want.Owner == render.OwnerHeadgate && !prunes && isCrossplanes:
			return held(reason.BothMakeCRDs.With())
		case isSet || !concerns:
			return allowed
		case c.Want.Owner == render.OwnerHeadgate:
			return held(reason.CrossplaneCame.With())
		case !prunes && !crossplaneWas(c):
			return allowed // the step fails or waits, because no API serves its kind
		}
		return held(reason.CrossplaneLeft.With())
	}
}

// crossplaneWas reports whether Crossplane was installed when an earlier pass applied one of its objects.
func crossplaneWas(c draft.Case) bool {
	for id, e := range c.Seen.Inventory.Entries {
		if crossplane.Serves(id.Group) && e.UID != "" {
			return true
		}
	}
	return false
}
