package rounds

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

func (p Pass) Resumed(now plan.Plan, patient bool) plan.Plan { return p.resumed(now, patient) }

func Replaced(p, by plan.Plan) plan.Plan { return replaced(p, by, nil) }

func Overdue(p plan.Plan, late map[manifest.ID]bool) plan.Plan { return overdue(p, Times{}, late) }

func obj(name string) manifest.ID { return manifest.ID{Kind: "ConfigMap", Namespace: "d", Name: name} }
