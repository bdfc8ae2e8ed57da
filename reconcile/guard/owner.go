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
		switch {
		case c.Seen.Natural == "", c.Seen.Natural == c.Want.Owner:
			return allowed
		case c.Want.Owner == render.OwnerHeadgate:
			return besideCrossplane(s, isSet)
		}
		return withoutCrossplane(s, isSet, c)
	}
}

// besideCrossplane rules on a step of a sync that makes CRDs while Crossplane makes them, too.
func besideCrossplane(s plan.Step, isSet bool) plan.Ruling {
	isCrossplanes := s.ID == crossplane.MRAP(s.ID.Name) || s.ID.Group == crossplane.Packages
	switch {
	case isCrossplanes && s.Action != plan.Prune:
		return held(reason.BothMakeCRDs.With())
	case isSet, !changesKind(s):
		return allowed
	}
	return held(reason.CrossplaneCame.With())
}

// withoutCrossplane rules on a step of a sync that leaves CRDs to Crossplane, which is not installed.
func withoutCrossplane(s plan.Step, isSet bool, c draft.Case) plan.Ruling {
	switch {
	case isSet, !changesKind(s):
		return allowed
	case s.Action != plan.Prune && !crossplaneWas(c):
		return allowed // the step fails or waits, because no API serves its kind
	}
	return held(reason.CrossplaneLeft.With())
}

// changesKind reports whether a step writes a definition, or deletes what makes a kind.
func changesKind(s plan.Step) bool {
	makes := s.ID.IsCRD() || crossplane.IsMRD(s.ID)
	return s.Definition || makes && s.Action == plan.Prune
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
