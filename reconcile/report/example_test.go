package report_test

import (
	"fmt"
	"os"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/manifest"
)

// One plan has one report, whatever the format. The forecast of a pass is not applied.
func ExampleNew() {
	r := report.New(plan.Plan{
		Sync: inventory.Sync{Namespace: "headgate-system", Name: "platform"},
		Steps: []plan.Step{
			{Action: plan.Create, Cause: plan.Commit, ID: manifest.ID{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}},
			{Action: plan.Prune, Cause: plan.Commit, ID: manifest.ID{Kind: "ConfigMap", Namespace: "shop", Name: "old"}},
		},
	}, nil, false)
	if err := (report.Text{}).Write(os.Stdout, r); err != nil {
		fmt.Println(err)
	}
	fmt.Println(r.Verdict.Activation.Description)
	// Output:
	// + create ConfigMap/shop/settings
	// - prune  ConfigMap/shop/old
	// Summary: 1 to create, 1 to prune
	// 1 object
}
