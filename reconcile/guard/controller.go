package guard

import (
	"cmp"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// ownGroup is the suffix of the names of Headgate's own CRDs.
const ownGroup = ".headgate.dev"

// ownNames lists the names of the controller's other objects that do not begin with ownPrefix.
var ownNames = []string{"headgate-view", "headgate-approve", "headgate-approvals"}

// ownPrefix is the prefix of the names of the controller's objects. Another shard has a name with a suffix.
const ownPrefix = "headgate-controller"

// isController reports whether an object belongs to Headgate's controller, as examples/controller installs it: its CRDs, its namespace
// home, and its roles, policies and workloads. Names decide, because marks of a live object can be removed.
func isController(id manifest.ID, home string) bool {
	home = cmp.Or(home, render.Home)
	switch {
	case id.IsCRD():
		return strings.HasSuffix(id.Name, ownGroup)
	case id.IsNamespace():
		return id.Name == home
	case id.Namespace != "" && id.Namespace != home:
		return false
	}
	return strings.HasPrefix(id.Name, ownPrefix) || slices.Contains(ownNames, id.Name)
}

// notController holds the update of an object of the controller that this sync did not create. The namespace of the inventory is an
// exception, because Headgate creates it before the commit does.
func notController(home string) func(plan.Step, draft.Case) plan.Ruling {
	return func(s plan.Step, c draft.Case) plan.Ruling {
		live := c.Live(s)
		switch {
		case live == nil || !isController(s.ID, home):
			return allowed
		case s.ID == namespaceOf(c), c.Seen.Mine(s.ID, live):
			return allowed
		}
		return held(reason.TakesController.With())
	}
}

// keepsController retains the objects of the controller. Without them, no Sync object runs.
func keepsController(home string) func(plan.Step, draft.Case) plan.Ruling {
	return func(s plan.Step, _ draft.Case) plan.Ruling {
		if isController(s.ID, home) {
			return retained(reason.KeepsController.With())
		}
		return allowed
	}
}

// namespaceOf returns the namespace of the sync's inventory.
func namespaceOf(c draft.Case) manifest.ID {
	return manifest.ID{Kind: "Namespace", Name: c.Seen.Inventory.Sync.Namespace}
}
