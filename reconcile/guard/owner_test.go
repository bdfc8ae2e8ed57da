package guard

import (
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// The guard also rules on prunes of a plan.
func TestOwnerOfAPrune(t *testing.T) {
	seen := given.Owning(t)
	crd := given.CRD("buckets", "Bucket")
	o := given.Wanted(t, crd)
	seen.Objects[o.ID], seen.Natural = given.Live(crd, "u"), render.OwnerCrossplane
	seen.Inventory.Entries[o.ID] = plan.Applied(seen.Objects[o.ID], given.Sync.Digest(o))
	keeps := given.Wanted(t, given.ConfigMap("a"))
	_, steps := given.Steps(t, render.Desired{Owner: render.OwnerHeadgate, Objects: []render.Object{keeps}}, seen, Guarding{}.Guards()...)
	s := steps["CustomResourceDefinition buckets.example.org"]
	if !slices.ContainsFunc(s.Holds(), func(r plan.Ruling) bool { return r.Guard == Owner }) {
		t.Errorf("%s, held by %+v", s.Action, s.Holds())
	}
}

// While it is open who makes the CRDs, none is made or pruned, also if the commit does not declare its definition any more.
func TestOwner(t *testing.T) {
	crd, mrd := plan.CRD(given.Buckets), crossplane.MRD(given.Buckets)
	object := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}
	for name, tc := range map[string]struct {
		reason        string
		natural, want render.Owner
		isSet         bool
		step          plan.Step
		code          reason.Code // "" if it passes
	}{
		"Agreed":        {"This sync makes the CRDs, and there is no Crossplane.", render.OwnerHeadgate, render.OwnerHeadgate, false, plan.Step{Action: plan.Prune, ID: crd}, ""},
		"Unread":        {"The cluster was not read.", "", render.OwnerHeadgate, false, plan.Step{Action: plan.Prune, ID: crd}, ""},
		"Came":          {"Crossplane may use the CRD.", render.OwnerCrossplane, render.OwnerHeadgate, false, plan.Step{Action: plan.Prune, ID: crd}, reason.CrossplaneCame},
		"CameForMRD":    {"Its deletion would delete the CRD.", render.OwnerCrossplane, render.OwnerHeadgate, false, plan.Step{Action: plan.Prune, ID: mrd}, reason.CrossplaneCame},
		"CameToMake":    {"Crossplane makes it, too.", render.OwnerCrossplane, render.OwnerHeadgate, false, plan.Step{Action: plan.Create, ID: crd, Definition: true}, reason.CrossplaneCame},
		"CameForOthers": {"A ConfigMap has nothing to do with Crossplane.", render.OwnerCrossplane, render.OwnerHeadgate, false, plan.Step{Action: plan.Prune, ID: object}, ""},
		"CRDOfACommit":  {"The commit declares a CRD itself.", render.OwnerCrossplane, render.OwnerHeadgate, false, plan.Step{Action: plan.Update, ID: crd}, ""},
		"Chosen":        {"A user has chosen.", render.OwnerCrossplane, render.OwnerHeadgate, true, plan.Step{Action: plan.Prune, ID: crd}, ""},
		"BothPolicies":  {"Crossplane would activate its definitions, whatever a user has chosen.", render.OwnerCrossplane, render.OwnerHeadgate, true, plan.Step{Action: plan.Create, ID: crossplane.MRAP("team")}, reason.BothMakeCRDs},
		"Left":          {"Crossplane is gone, and its CRDs may be in use.", render.OwnerHeadgate, render.OwnerCrossplane, false, plan.Step{Action: plan.Prune, ID: crd}, reason.CrossplaneLeft},
		"LeftToMake":    {"No API serves the MRD, which fails.", render.OwnerHeadgate, render.OwnerCrossplane, false, plan.Step{Action: plan.Create, ID: mrd, Definition: true}, ""},
	} {
		c := draft.Case{Want: render.Desired{Owner: tc.want}, Seen: facts.Observed{Ground: facts.Ground{Natural: tc.natural, Inventory: inventory.Inventory{}}}}
		if r := owner(tc.isSet)(tc.step, c); r.Reason.Code != tc.code || (r.Response() == plan.Held) != (tc.code != "") {
			t.Errorf("%s: %s\n%+v, want %q", name, tc.reason, r, tc.code)
		}
	}
}
