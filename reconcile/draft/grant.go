package draft

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// noteRebuilt returns a warning if the inventory is rebuilt from marks.
func noteRebuilt(o facts.Ground) []manifest.Finding {
	if !o.Inventory.Rebuilt {
		return nil
	}
	return []manifest.Finding{{
		Rule: plan.RuleRebuilt, Severity: manifest.Warning, About: manifest.About{},
		Message: fmt.Sprintf("the inventory of %s was lost or changed by another client; Headgate rebuilds it from the marks on objects, now with %s, and prunes nothing in this pass", o.Inventory.Sync, manifest.Count(len(o.Inventory.Entries), "object")),
		Fix:     "look at the prunes that are held afterwards: approve them, or run 'headgate release --rebuilt'",
	}}
}

// forgets reports whether the record lists places where a used approval no longer stands. Once it was removed everywhere, it may be
// given again.
func forgets(p plan.Plan, have []inventory.Grant) bool {
	return slices.ContainsFunc(have, func(g inventory.Grant) bool { return g.Given && !slices.Equal(g.On, p.Given.Standing(g).On) })
}
