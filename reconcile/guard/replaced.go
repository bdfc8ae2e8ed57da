package guard

import (
	"fmt"

	"headgate.dev/headgate/reconcile/plan"
)

// replaced holds an update of a package where a rule holds what it does to a definition that is
// installed. It names the first of them, and how many more there are.
func replaced(s plan.Step, c plan.Case, rule func(plan.Step, plan.Case) plan.Ruling) plan.Ruling {
	var all plan.Ruling
	more := 0
	for _, r := range c.Seen.Replaced[s.ID] {
		said := rule(r.Step(), c)
		all.Needs = append(all.Needs, said.Needs...)
		switch {
		case said.Reason == "", all.Answer == plan.Held && said.Answer != plan.Held:
		case all.Reason != "" && all.Answer == said.Answer:
			more++
		default:
			all.Answer, all.Reason, more = said.Answer, fmt.Sprintf("%s is installed with it, and %s", r.ID.Name, said.Reason), 0
		}
	}
	if more > 0 {
		all.Reason += fmt.Sprintf("; and so it is with %s more", plan.Plural(int64(more), "definition"))
	}
	return all
}
