package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
)

// final rules on deactivations. It keeps definitions that Crossplane or a policy would only activate again, and definitions that
// could not come back.
func final(s plan.Step, c draft.Case) plan.Ruling {
	if !s.Deactivates || c.Want.Owner != render.OwnerCrossplane {
		return allowed
	}
	var leaving []string // the prune waits for these prunes
	for _, policy := range c.LeavingPolicies(s.ID.Name) {
		if policy.Action == plan.Prune {
			leaving = append(leaving, policy.ID.Name)
		}
	}
	if policy := c.InForce(leaving...).Matching(s.ID.Name); policy != "" {
		return held(reason.LivePolicyNames.With(policy, narrow(policy)))
	}
	revision, installed := draft.InstalledBy(c.Live(s))
	r, known := c.Seen.Upstream.Revisions[revision]
	switch {
	case !installed:
		return retained(reason.NoRevision.With())
	case !known || !r.Active:
		return retained(reason.RevisionInactive.With(revision))
	case !r.SafeStart:
		return retained(reason.NoSafeStart.With(r.Package.Name))
	}
	return allowed
}
