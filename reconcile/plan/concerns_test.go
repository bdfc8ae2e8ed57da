package plan

import (
	"testing"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

func TestConcerns(t *testing.T) {
	const name, file = "t1.aws.example.org", "aws/package/t.yaml"
	gone := LostPackage{Directory: "aws", names: inventory.FingerprintsOf([]string{name})}
	here := gone
	here.Remains, here.returns = true, map[string]bool{name: true}
	config := manifest.ID{Kind: "ConfigMap", Name: "a"}
	at := func(path string) manifest.Origin { return manifest.Origin{Path: path} }
	cases := map[string]struct {
		reason string
		of     LostPackage
		step   Step
		path   string // as recorded
		want   bool
	}{
		"PrunedDefinition":   {"An older inventory has no paths.", gone, Step{Action: Prune, ID: CRD(name)}, "", true},
		"PrunedMRD":          {"It is in the way of being deactivated by accident.", gone, Step{Action: Prune, ID: crossplane.MRD(name)}, "", true},
		"PrunedOther":        {"It came from the package.", gone, Step{Action: Prune, ID: config}, "aws/extra.yaml", true},
		"HeldPrune":          {"Another guard held it before.", gone, Step{Action: Hold, Would: Prune, ID: config}, "aws/extra.yaml", true},
		"PrunedElsewhere":    {"It came from elsewhere.", gone, Step{Action: Prune, ID: config}, "platform/a.yaml", false},
		"PrunedUnknown":      {"Its origin is not known.", gone, Step{Action: Prune, ID: config}, "", false},
		"Made":               {"A CRD of the package.", gone, Step{Action: Create, ID: CRD(name), Origin: at("vendor/t.yaml")}, "", true},
		"MadeExample":        {"An example of the package.", gone, Step{Action: Create, ID: config, Origin: at(file)}, "", true},
		"MadeElsewhere":      {"Something else.", gone, Step{Action: Create, ID: config, Origin: at("platform/a.yaml")}, "", false},
		"StillADefinition":   {"Another package declares it.", gone, Step{Action: Create, ID: CRD(name), Definition: true, Origin: at(file)}, "", false},
		"TakenBack":          {"That is for another guard.", gone, Step{Action: Prune, Deactivates: true, ID: CRD(name)}, "", false},
		"Returned":           {"The package is there without it.", here, Step{Action: Create, ID: CRD(name), Origin: at("platform/t.yaml")}, "", true},
		"ReturnedDefinition": {"It is one of another package.", here, Step{Action: Create, ID: CRD(name), Definition: true}, "", false},
		"RestOfAPackage":     {"Objects of a package are its own.", here, Step{Action: Create, ID: config, Origin: at(file)}, "", false},
	}
	for name, tc := range cases {
		if got := tc.of.Concerns(tc.step, inventory.Entry{Path: tc.path}); got != tc.want {
			t.Errorf("%s: %s\nconcerns = %t, want %t", name, tc.reason, got, tc.want)
		}
	}
}
