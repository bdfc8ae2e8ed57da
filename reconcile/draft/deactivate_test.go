package draft_test

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// A paused policy requests no change, so the definitions that it names are not deactivated.
func TestPausedPolicyOfTheCommit(t *testing.T) {
	policy := given.Policy("team", given.Buckets)
	base := given.Desired(t, render.OwnerHeadgate, map[string]string{"policy.yaml": policy})
	for reason, tc := range map[string]struct {
		policy string
		stays  bool
	}{
		"it is paused":                      {strings.Replace(policy, "metadata:", "metadata:\n  annotations: {crossplane.io/paused: \"true\"}", 1), true},
		"it is paused and names others now": {strings.Replace(given.Policy("team", "other.example.org"), "metadata:", "metadata:\n  annotations: {crossplane.io/paused: \"true\"}", 1), false},
		"it names others now":               {given.Policy("team", "other.example.org"), false},
	} {
		head := given.Desired(t, render.OwnerHeadgate, map[string]string{"policy.yaml": tc.policy})
		seen, err := baseline.Baseline{Base: base, Sync: given.Sync, Terms: facts.Terms{Deactivate: true}}.Observe(t.Context(), head)
		if err != nil {
			t.Fatal(err)
		}
		p := given.Computed(t, head, seen, guard.Guarding{}.Guards()...)
		if taken := slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.ID == plan.CRD(given.Buckets) && s.Deactivates }); taken == tc.stays {
			t.Errorf("%s: taken back %t", reason, taken)
		}
		p.Want.Owner = render.OwnerCrossplane
		if names := draft.Unnamed(&p, facts.Upstream{}); slices.Contains(names, given.Buckets) == tc.stays {
			t.Errorf("%s: nothing in the commit names %q", reason, names)
		}
	}
}

func TestDeactivate(t *testing.T) {
	const name = "buckets.example.org"
	controlled := func(id manifest.ID, edit ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		isController := true
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: id.Name, UID: types.UID("uid of " + id.Kind), ResourceVersion: "3",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "aws-1", Controller: &isController}},
		}}
		for _, e := range edit {
			e(o)
		}
		return o
	}
	ownerless := func(o *metav1.PartialObjectMetadata) { o.OwnerReferences = nil }
	deleting := func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = &metav1.Time{} }
	aws := plan.LiveRevision{Package: manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "aws"}, Active: true, SafeStart: true}
	// state returns a cluster in which a definition is Active, Inactive or missing (""), with or without a CRD.
	state := func(definition string, open bool, edit ...func(*facts.Upstream)) facts.Upstream {
		up := facts.Upstream{
			Definitions: map[string]crossplane.LiveDefinition{}, Policies: map[string]crossplane.LivePolicy{},
			Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}, Revisions: map[string]plan.LiveRevision{"aws-1": aws},
		}
		if definition != "" {
			up.Definitions[name] = crossplane.LiveDefinition{Active: definition == "Active", Revision: "aws-1"}
			up.Objects[crossplane.MRD(name)] = controlled(crossplane.MRD(name))
		}
		if open {
			up.Objects[plan.CRD(name)] = controlled(plan.CRD(name))
		}
		for _, e := range edit {
			e(&up)
		}
		return up
	}
	lost := func(up *facts.Upstream) {
		r := up.Revisions["aws-1"]
		r.Lost = []string{name}
		up.Revisions["aws-1"] = r
	}
	free := func(up *facts.Upstream) { up.CanDeactivate = true }
	named := func(patterns ...string) func(*facts.Upstream) {
		return func(up *facts.Upstream) { up.Policies["live"] = crossplane.LivePolicy{Patterns: patterns} }
	}
	// leavingPolicy adds a policy that this sync applied and that is no longer in the commit.
	leavingPolicy := func(up *facts.Upstream) {
		up.Objects[crossplane.MRAP("live")] = given.Live(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "ManagedResourceActivationPolicy", "metadata": map[string]any{"name": "live"},
		}}, "u")
	}
	unused := question.Answers{question.Dependents{Of: crossplane.MRD(name)}: question.Counted{}, question.Dependents{Of: plan.CRD(name)}: question.Counted{}}
	inUse := question.Answers{question.Dependents{Of: crossplane.MRD(name)}: question.Counted{Count: 1}, question.Dependents{Of: plan.CRD(name)}: question.Counted{Count: 1}}
	type result struct {
		Step   string // action, kind and, if set, the guard
		Checks int
	}
	cases := map[string]struct {
		reason  string
		up      facts.Upstream
		answers question.Answers
		policy  string // of the commit
		want    []result
	}{
		"Active":       {"The MRD of an active definition is deleted first.", state("Active", true), unused, "", []result{{"prune ManagedResourceDefinition", 1}}},
		"Lost":         {"Crossplane must be told to create a missing MRD again.", state("", true, lost), unused, "", []result{{"update ProviderRevision", 1}}},
		"Inactive":     {"The MRD is inactive, so Crossplane does not create the CRD again.", state("Inactive", true), unused, "", []result{{"prune CustomResourceDefinition", 1}}},
		"Closed":       {"The definition is deactivated completely.", state("Inactive", false), unused, "", nil},
		"NotFinal":     {"The API server lets the definition become inactive: that is one write.", state("Active", true, free), unused, "", []result{{"prune ManagedResourceDefinition inactive", 1}}},
		"NotFinalLeft": {"Crossplane deletes the CRD of an inactive definition itself.", state("Inactive", true, free), unused, "", []result{{"", 1}}},
		"NotFinalLost": {"An older version of the control plane left it in the middle of a deactivation.", state("", true, lost, free), unused, "", []result{{"update ProviderRevision", 1}}},
		"NotFinalDeleted": {"A user deletes the definition, so that the package creates it again.", state("Active", true, free, func(up *facts.Upstream) {
			up.Objects[crossplane.MRD(name)] = controlled(crossplane.MRD(name), deleting)
		}), unused, "", []result{{"prune ManagedResourceDefinition", 1}}},
		"NotFinalInUse": {"The definition has objects.", state("Active", true, free), inUse, "", []result{{"hold ManagedResourceDefinition in use", 0}}},
		"NotFinalNamed": {"A policy of another tool would activate it again.", state("Active", true, free, named("buckets.*")), unused, "", []result{{"hold ManagedResourceDefinition final", 0}}},
		"Unasked":       {"Before its objects are counted, the definition may be in use.", state("Active", true), nil, "", []result{{"hold ManagedResourceDefinition in use", 0}}},
		"InUse":         {"The definition has objects.", state("Active", true), inUse, "", []result{{"hold ManagedResourceDefinition in use", 0}}},
		"UsedOnceMore":  {"An object was created between the two steps.", state("Inactive", true), inUse, "", []result{{"hold CustomResourceDefinition in use", 0}}},
		"Named":         {"A policy of the commit names the definition.", state("Active", true), unused, "*.example.org", nil},
		"NamedElsewhere": {"A policy of another tool names the definition.", state("Active", true, named("buckets.*")), unused, "",
			[]result{{"hold ManagedResourceDefinition final", 0}}},
		"NamedByOneThatGoes": {"A policy that the same commit removes names the definition: the pass waits for its removal.", state("Active", true, named("buckets.*"), leavingPolicy), unused, "",
			[]result{{"prune ManagedResourceActivationPolicy", 1}, {"prune ManagedResourceDefinition waits", 1}}},
		"NamedByOneThatStays": {"A policy that should be removed names the definition, but a guard holds its removal.", state("Active", true, named("buckets.*"), leavingPolicy, func(up *facts.Upstream) {
			up.Objects[crossplane.MRAP("live")].Annotations[crossplane.PausedAnnotation] = "true"
		}), unused, "", []result{{"hold ManagedResourceActivationPolicy paused", 0}, {"hold ManagedResourceDefinition final", 0}}},
		"NamedLate": {"A policy would activate the definition again at once.", state("Inactive", true, named("*")), unused, "", []result{{"hold CustomResourceDefinition final", 0}}},
		"NoSafeStart": {"Without the capability safe-start, Crossplane would activate the definition again.", state("Active", true, func(up *facts.Upstream) {
			r := aws
			r.SafeStart = false
			up.Revisions["aws-1"] = r
		}), unused, "", []result{{"keep ManagedResourceDefinition final", 0}}},
		"OldRevision": {"An inactive revision would not create the MRD again.", state("Active", true, func(up *facts.Upstream) {
			r := aws
			r.Active = false
			up.Revisions["aws-1"] = r
		}), unused, "", []result{{"keep ManagedResourceDefinition final", 0}}},
		"Ownerless": {"Nobody would create the MRD again, and its CRD would be deleted with it.", state("Active", true, func(up *facts.Upstream) {
			up.Objects[crossplane.MRD(name)] = controlled(crossplane.MRD(name), ownerless)
		}), unused, "", []result{{"keep ManagedResourceDefinition final", 0}}},
		"OwnerlessCRD": {"A CRD without an owner stays unchanged.", state("Inactive", true, func(up *facts.Upstream) {
			up.Objects[plan.CRD(name)] = controlled(plan.CRD(name), ownerless)
		}), unused, "", nil},
		"Paused": {"A user has paused the MRD.", state("Active", true, func(up *facts.Upstream) {
			up.Objects[crossplane.MRD(name)].Annotations = map[string]string{crossplane.PausedAnnotation: "true"}
		}), unused, "", []result{{"hold ManagedResourceDefinition paused", 0}}},
		"Protected": {"A Usage protects the CRD.", state("Inactive", true, func(up *facts.Upstream) {
			up.Objects[plan.CRD(name)].Labels = map[string]string{"crossplane.io/in-use": "true"}
		}), unused, "", []result{{"hold CustomResourceDefinition protected", 0}}},
		"Leaving": {"The CRD is being deleted already.", state("Inactive", true, func(up *facts.Upstream) {
			up.Objects[plan.CRD(name)] = controlled(plan.CRD(name), deleting)
		}), unused, "", []result{{"", 1}}},
		"CameBackMeanwhile": {"The MRD was read as missing just before the commit was compared with the cluster.", state("Inactive", true, func(up *facts.Upstream) {
			up.Definitions["other.example.org"] = crossplane.LiveDefinition{Active: true, Revision: "aws-1"}
			up.Objects[crossplane.MRD("other.example.org")] = controlled(crossplane.MRD("other.example.org"), ownerless)
		}), unused, "", []result{{"keep ManagedResourceDefinition final", 1}, {"prune CustomResourceDefinition", 1}}},
		"LostAndTold": {"Crossplane is told only once about a missing MRD.", state("", true, lost, func(up *facts.Upstream) {
			r := up.Revisions["aws-1"]
			r.Touched = inventory.Hash([]byte(name + "/uid of CustomResourceDefinition"))
			up.Revisions["aws-1"] = r
		}), unused, "", []result{{"", 1}}},
	}
	for situation, tc := range cases {
		t.Run(situation, func(t *testing.T) {
			d := render.DecidedDefinition{Decision: activation.Decision{Definition: &catalogue.Definition{Name: name, Plural: "buckets", Group: "example.org", Kind: "Bucket", Document: &manifest.Document{}}}}
			want := render.Desired{Owner: render.OwnerCrossplane, Live: true, Definitions: []render.DecidedDefinition{d}}
			if tc.policy != "" {
				want.Definitions[0].Active = true
				want.Policies = []catalogue.Policy{{Name: "ours", Patterns: []catalogue.Pattern{{Glob: tc.policy}}}}
			}
			seen := facts.Observed{
				Ground: facts.Ground{
					Inventory: inventory.Inventory{Sync: given.Sync, Owner: render.OwnerCrossplane},
					Natural:   render.OwnerCrossplane,
					Kinds:     given.Kinds,
				},
				Given:    facts.Given{Terms: facts.Terms{Deactivate: true}},
				Upstream: tc.up,
				Answers:  tc.answers,
			}
			if policy, ours := tc.up.Objects[crossplane.MRAP("live")]; ours {
				want.Objects = []render.Object{given.Wanted(t, given.ConfigMap("kept"))}
				seen.Inventory.Entries = map[manifest.ID]inventory.Entry{crossplane.MRAP("live"): {UID: "u"}, want.Objects[0].ID: {UID: "kept"}}
				seen.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{crossplane.MRAP("live"): policy, want.Objects[0].ID: given.Live(given.ConfigMap("kept"), "kept")}
			}
			p := given.Computed(t, want, seen, guard.Guarding{}.Guards()...)
			var got []result
			checks := 0
			for _, e := range p.Effects {
				if e.Kind == plan.Deactivate && e.State == plan.Pending {
					checks++
				}
			}
			for _, s := range p.Steps {
				output := string(s.Action) + " " + s.ID.Kind
				if s.Guard != "" {
					output += " " + string(s.Guard)
				}
				if s.Waiting() {
					output += " waits"
				}
				if s.Action == plan.Prune && s.Phase == plan.DoInactive {
					output += " inactive"
				}
				if s.ID.Kind == "ConfigMap" {
					continue // the ConfigMap stays in the commit
				}
				got = append(got, result{output, checks})
			}
			if len(got) == 0 && checks > 0 {
				got = []result{{"", checks}}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nsteps (-want +got):\n%s", tc.reason, diff)
			}
			if len(seen.Inventory.Entries) > 0 {
				return // the remaining checks need a sync that owns nothing
			}
			if intent := record.Intent(p, seen.Inventory); len(intent.Entries) > 0 {
				t.Errorf("what Crossplane made is never ours: %v", intent.Entries)
			}
			seen.Terms.Deactivate = false
			if p := given.Computed(t, want, seen, guard.Guarding{}.Guards()...); len(p.Steps) > 0 {
				t.Errorf("it was not requested: %s %s", p.Steps[0].Action, p.Steps[0].ID)
			}
		})
	}
}

// A commit with unknown definitions deactivates nothing. A definition that a user paused in the cluster stays active.
func TestDeactivateNot(t *testing.T) {
	const name = "buckets.example.org"
	for situation, tc := range map[string]struct {
		partial, paused bool
		want            int
	}{
		"Unused": {want: 1}, "Partial": {partial: true}, "Paused": {paused: true},
	} {
		seen := facts.Observed{Given: facts.Given{Terms: facts.Terms{Deactivate: true}}, Upstream: facts.Upstream{
			Definitions: map[string]crossplane.LiveDefinition{name: {Paused: tc.paused, Revision: "aws-1"}},
			Objects: map[manifest.ID]*metav1.PartialObjectMetadata{plan.CRD(name): given.Live(given.CRD("buckets", "Bucket"), "u", func(o *metav1.PartialObjectMetadata) {
				is := true
				o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "aws-1", Controller: &is}}
			})},
		}}
		p := plan.Plan{Want: render.Desired{Owner: render.OwnerCrossplane, Live: true, Partial: tc.partial}}
		if draft.Deactivate(&p, seen); p.Count(plan.Prune) != tc.want {
			t.Errorf("%s: %d prunes, want %d", situation, p.Count(plan.Prune), tc.want)
		}
	}
}

// An approval of a deactivation is for the definition, in whichever phase the deactivation is.
func TestDeactivateApproved(t *testing.T) {
	first := plan.Step{Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: "many", Severity: plan.Block}, Deactivates: true, ID: crossplane.MRD("buckets.example.org")}
	last := first
	last.ID = plan.CRD("buckets.example.org")
	if a, b := first.Approval(), last.Approval(); a.Digest != b.Digest {
		t.Errorf("the digest changes on the way: %s, %s", a.Digest, b.Digest)
	}
	p := plan.Plan{Steps: []plan.Step{{Action: plan.Prune, Approved: true, Deactivates: true, ID: first.ID}}}
	left := []inventory.Grant{{Left: []string{draft.ClaimKey(first, "many")}}}
	if got := record.Settled(p, inventory.Inventory{Grants: left}, []plan.Outcome{{ID: first.ID, Action: plan.Prune}}).Grants; len(got[0].Left) != 1 {
		t.Error("the definition is gone, and its CRD is still to go: that was approved too")
	}
	p.Steps[0].ID = last.ID
	if got := record.Settled(p, inventory.Inventory{Grants: left}, []plan.Outcome{{ID: last.ID, Action: plan.Prune}}).Grants; len(got[0].Left) != 0 {
		t.Errorf("and then it is done: %v", got[0].Left)
	}
}
