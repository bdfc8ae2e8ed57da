package draft

import (
	"testing"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

func TestConcerns(t *testing.T) {
	const name, file = "t1.aws.example.org", "aws/package/t.yaml"
	gone := plan.LostPackage{Directory: "aws", Names: inventory.FingerprintsOf([]string{name})}
	here := gone
	here.Remains, here.Returns = true, map[string]bool{name: true}
	config := manifest.ID{Kind: "ConfigMap", Name: "a"}
	at := func(path string) manifest.Origin { return manifest.Origin{Path: path} }
	cases := map[string]struct {
		reason string
		of     plan.LostPackage
		step   plan.Step
		path   string // as recorded
		want   bool
	}{
		"PrunedDefinition":   {"An older inventory records no paths.", gone, plan.Step{Action: plan.Prune, ID: plan.CRD(name)}, "", true},
		"PrunedMRD":          {"An MRD of the lost package would be pruned.", gone, plan.Step{Action: plan.Prune, ID: crossplane.MRD(name)}, "", true},
		"PrunedOther":        {"The inventory records that the object came from the package.", gone, plan.Step{Action: plan.Prune, ID: config}, "aws/extra.yaml", true},
		"HeldPrune":          {"Another guard holds the prune of the object already.", gone, plan.Step{Action: plan.Hold, Would: plan.Prune, ID: config}, "aws/extra.yaml", true},
		"PrunedElsewhere":    {"The object came from another directory.", gone, plan.Step{Action: plan.Prune, ID: config}, "platform/a.yaml", false},
		"PrunedUnknown":      {"The origin of the object is unknown.", gone, plan.Step{Action: plan.Prune, ID: config}, "", false},
		"Made":               {"A CRD of the package would be created.", gone, plan.Step{Action: plan.Create, ID: plan.CRD(name), Origin: at("vendor/t.yaml")}, "", true},
		"MadeExample":        {"An example of the package would be created.", gone, plan.Step{Action: plan.Create, ID: config, Origin: at(file)}, "", true},
		"MadeElsewhere":      {"An object of another directory would be created.", gone, plan.Step{Action: plan.Create, ID: config, Origin: at("platform/a.yaml")}, "", false},
		"StillADefinition":   {"Another package declares the CRD.", gone, plan.Step{Action: plan.Create, ID: plan.CRD(name), Definition: true, Origin: at(file)}, "", false},
		"TakenBack":          {"Another guard holds a prune that deactivates a definition.", gone, plan.Step{Action: plan.Prune, Deactivates: true, ID: plan.CRD(name)}, "", false},
		"Returned":           {"The package exists, but no longer declares the CRD.", here, plan.Step{Action: plan.Create, ID: plan.CRD(name), Origin: at("platform/t.yaml")}, "", true},
		"ReturnedDefinition": {"The CRD belongs to another package.", here, plan.Step{Action: plan.Create, ID: plan.CRD(name), Definition: true}, "", false},
		"RestOfAPackage":     {"The other objects of an existing package are its own.", here, plan.Step{Action: plan.Create, ID: config, Origin: at(file)}, "", false},
	}
	for name, tc := range cases {
		if got := tc.of.Concerns(tc.step, inventory.Entry{Path: tc.path}); got != tc.want {
			t.Errorf("%s: %s\nconcerns = %t, want %t", name, tc.reason, got, tc.want)
		}
	}
}
