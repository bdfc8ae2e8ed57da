package guard

import (
	"headgate.dev/headgate/reconcile/plan"
)

// The codes of an update of a package, of which a rule holds what it does to definitions that are installed.
const (
	PackageInstalls     plan.Code = "PackageInstalls"     // the name of the definition, and the reason of the rule
	PackageInstallsMany plan.Code = "PackageInstallsMany" // the same, and how many more definitions there are
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
		case said.Reason.None(), all.Answer == plan.Held && said.Answer != plan.Held:
		case !all.Reason.None() && all.Answer == said.Answer:
			more++
		default:
			all.Answer, all.Reason, more = said.Answer, PackageInstalls.With(r.ID.Name, said.Reason), 0
		}
	}
	if more > 0 {
		all.Reason = PackageInstallsMany.With(append(all.Reason.Values, more)...)
	}
	return all
}
