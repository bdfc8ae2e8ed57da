package lint

import (
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// RuleDefault is the rule for Crossplane's own policy, which no commit shows.
const RuleDefault = "default-policy"

// defaultPolicy is the name of the policy that Crossplane's Helm chart creates.
const defaultPolicy = "default"

// Default notes, once for a commit, that a policy outside of it may activate everything. It does if Crossplane makes the CRDs and the
// commit has policies of its own, unless it declares the policy with that name.
func Default(want render.Desired) []manifest.Finding {
	own := slices.DeleteFunc(slices.Clone(want.Policies), func(p catalogue.Policy) bool {
		_, pulled := want.Within(p.Origin)
		return pulled
	})
	declared := slices.ContainsFunc(own, func(p catalogue.Policy) bool { return p.Name == defaultPolicy })
	if want.Owner != render.OwnerCrossplane || len(own) == 0 || declared {
		return nil
	}
	return []manifest.Finding{{
		Rule: RuleDefault, Severity: manifest.Note, Origin: own[0].Origin, About: manifest.About{Object: crossplane.MRAP(defaultPolicy)},
		Message: "Crossplane's chart creates a policy named default that activates *, which makes every definition active, whatever the policies here name",
		Fix:     "set provider.defaultActivations={} for the chart and delete that policy; 'headgate why NAME --live' shows whether it exists",
	}}
}
