package guard

import (
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
)

// keepsExternalName blocks the merge of another external name: Crossplane makes another cloud resource, and forgets the one that it
// manages. A name that is new may be the one that Crossplane has written already.
func keepsExternalName(s plan.Step, _ draft.Case) plan.Ruling {
	before, after, changes := contents(s)
	if !changes || before == nil || !applied(s) {
		return allowed
	}
	was, is := before.GetAnnotations()[crossplane.ExternalName], after.GetAnnotations()[crossplane.ExternalName]
	if was == "" || was == is {
		return allowed
	}
	r := held(reason.NameInCloudChanges.With(s.ID, was, is))
	r.Claims = []approval.Ask{s.ClaimAs(NameInCloud, "", s.Action)}
	return r
}
