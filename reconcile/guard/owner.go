package guard

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
)

// owner holds whatever makes or deletes CRDs where the record of who does disagrees with the
// cluster, and Crossplane's objects where this sync makes the CRDs itself.
func owner(isSet bool) func(plan.Step, plan.Case) plan.Ruling {
	return func(s plan.Step, c plan.Case) plan.Ruling {
		natural := c.Seen.Natural
		prunes := s.Action == plan.Prune
		switch {
		case natural == "" || natural == c.Want.Owner:
			return allowed
		case c.Want.Owner == render.OwnerHeadgate && !prunes && (s.ID == crossplane.MRAP(s.ID.Name) || s.ID.Group == crossplane.Packages):
			return held("Crossplane runs here, and this sync makes the CRDs itself: both would; set crdOwner: Crossplane")
		case isSet || !s.Definition && !(prunes && (s.ID.IsCRD() || crossplane.IsMRD(s.ID))):
			return allowed
		case c.Want.Owner == render.OwnerHeadgate:
			return held("this sync made the CRDs so far, and Crossplane runs here now; set crdOwner: Crossplane to hand them over, which deletes nothing, or crdOwner: Headgate to go on making them")
		}
		return held("Crossplane made the CRDs so far, and its API is not served any more; install it again, or set crdOwner: Headgate to have this sync make them")
	}
}
