package guard

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An update that an API server never accepts is held without a digest, because no approval could help.
func TestImpossible(t *testing.T) {
	of := func(kind, apiVersion string, spec map[string]any, versions ...string) *unstructured.Unstructured {
		u := given.CRD("buckets", "Bucket")
		u.SetKind(kind)
		u.SetAPIVersion(apiVersion)
		was := u.Object["spec"].(map[string]any)
		maps.Copy(was, spec)
		var list []any
		for i, v := range versions {
			last := i == len(versions)-1
			list = append(list, map[string]any{"name": v, "served": true, "storage": last, "referenceable": last})
		}
		was["versions"] = list
		return u
	}
	const xrd, upstream, v1 = "CompositeResourceDefinition", "apiextensions.crossplane.io/v2", "apiextensions.k8s.io/v1"
	type spec = map[string]any
	names := func(key string, value any) spec {
		return spec{"names": spec{"kind": "Bucket", "plural": "buckets", key: value}}
	}
	with := func(u *unstructured.Unstructured, status spec) *unstructured.Unstructured {
		u.Object["status"] = status
		return u
	}
	claims := func(plural string) spec { return spec{"claimNames": spec{"kind": "Claim", "plural": plural}} }
	stored := func(name, versions string) question.Answers {
		return question.Answers{
			question.Stored{Of: plan.CRD("buckets.example.org")}: []string{"v2"},
			question.Stored{Of: plan.CRD(name)}:                  strings.Fields(versions),
		}
	}
	refused := spec{"conditions": []any{spec{"type": "Established", "status": "False"}}}
	type impossibleCase struct {
		reason      string
		live, after *unstructured.Unstructured
		refused     bool // the API server already refused the update, so the trial has no result
		stance      plan.Stance
		answers     question.Answers
		want        string // part of the hold's reason; "" if the step is allowed
	}
	cases := map[string]impossibleCase{
		"Scope":       {reason: "The scope decides where objects are stored.", live: of("CustomResourceDefinition", v1, spec{"scope": "Namespaced"}, "v1"), after: of("CustomResourceDefinition", v1, spec{"scope": "Cluster"}, "v1"), want: "its scope"},
		"Kind":        {reason: "The API server refuses a new kind once the CRD is Established.", live: of("CustomResourceDefinition", v1, names("kind", "Bucket"), "v1"), after: of("CustomResourceDefinition", v1, names("kind", "Pail"), "v1"), want: "its names.kind"},
		"KindOfNone":  {reason: "Another CRD has the same kind, so a new kind is the way out.", live: with(of("CustomResourceDefinition", v1, names("kind", "Bucket"), "v1"), refused), after: of("CustomResourceDefinition", v1, names("kind", "Pail"), "v1")},
		"PluralOfOne": {reason: "The plural is part of the CRD's name.", live: with(of("CustomResourceDefinition", v1, names("plural", "buckets"), "v1"), refused), after: of("CustomResourceDefinition", v1, names("plural", "pails"), "v1"), want: "its names.plural"},
		"Group":       {reason: "The group is part of the CRD's name.", live: of("CustomResourceDefinition", v1, spec{"group": "a.org"}, "v1"), after: of("CustomResourceDefinition", v1, spec{"group": "b.org"}, "v1"), want: "its group"},
		"ShortNames":  {reason: "The API server accepts new short names of a CRD.", live: of("CustomResourceDefinition", v1, names("singular", "bucket"), "v1"), after: of("CustomResourceDefinition", v1, names("shortNames", []any{"b"}), "v1")},
		"NamesOfXRD":  {reason: "The names of an XRD are immutable as a whole.", live: of(xrd, upstream, names("singular", "bucket"), "v1"), after: of(xrd, upstream, names("categories", []any{"a"}), "v1"), want: "its names.categories"},
		"ClaimNames":  {reason: "The claim names of an XRD are immutable, too.", live: of(xrd, upstream, claims("a"), "v1"), after: of(xrd, upstream, claims("b"), "v1"), want: "its claimNames.plural"},
		"ClaimsCome":  {reason: "An XRD may add claims later.", live: of(xrd, upstream, nil, "v1"), after: of(xrd, upstream, claims("b"), "v1")},
		"ScopeFilled": {reason: "The API server sets the default scope of an XRD.", live: of(xrd, upstream, spec{"scope": "Namespaced"}, "v1"), after: of(xrd, upstream, nil, "v1")},
		"ScopeLeft":   {reason: "The API server refused another field, and the commit does not set the scope.", live: of(xrd, upstream, spec{"scope": "Cluster"}, "v1"), after: of(xrd, upstream, spec{"more": "x"}, "v1"), refused: true},
		"StoredClaims": {
			reason: "An XRD becomes two CRDs, and the API server refuses either.", answers: stored("claims.example.org", "v1 v2"),
			live: of(xrd, upstream, claims("claims"), "v1", "v2"), after: of(xrd, upstream, claims("claims"), "v2"),
			want: "it no longer declares v1, which status.storedVersions of the CRD claims.example.org names",
		},
		"StoredMoves": {
			reason: "Stored objects can move to another version only while both versions are declared.",
			live:   with(of("CustomResourceDefinition", v1, nil, "v1"), spec{"storedVersions": []any{"v1"}}), after: of("CustomResourceDefinition", v1, nil, "v2"),
			want: "Declare v1 again, with v2 as the storage version.",
		},
	}
	ruled := func(rule string) *unstructured.Unstructured {
		schema := spec{"type": "object", "properties": spec{"spec": spec{
			"type": "object", "properties": spec{"size": spec{"type": "integer"}}, "x-kubernetes-validations": []any{spec{"rule": rule}},
		}}}
		u := of("CustomResourceDefinition", v1, spec{"scope": "Namespaced", "names": spec{"kind": "Bucket", "listKind": "BucketList", "plural": "buckets", "singular": "bucket"}})
		u.Object["spec"].(spec)["versions"] = []any{spec{"name": "v1", "served": true, "storage": true, "schema": spec{"openAPIV3Schema": schema}}}
		return u
	}
	const unknown = "v1 spec has a rule that the API server refuses: "
	cases["Rule"] = impossibleCase{reason: "The API server cannot compile the rule.", live: ruled("self.size > 1"), after: ruled("self.sise > 1"), stance: plan.Comparing, want: unknown}
	cases["RuleTaken"] = impossibleCase{reason: "The API server accepted the rule, and knows better.", live: ruled("self.size > 1"), after: ruled("self.sise > 1")}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := given.Wanted(t, tc.after)
			trial := facts.Trial{Live: tc.live, After: tc.after}
			if tc.refused {
				trial.After, trial.Err = nil, errors.New("another field is wrong")
			}
			seen := facts.Observed{
				Ground: facts.Ground{
					Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{o.ID: {UID: "u", Digest: "before"}}},
					Kinds:     given.Kinds,
					Stance:    tc.stance,
				},
				Live: facts.Live{
					Objects: map[manifest.ID]*metav1.PartialObjectMetadata{o.ID: given.Live(tc.after, "u")},
					Trials:  map[manifest.ID]facts.Trial{o.ID: trial},
				},
				Answers: tc.answers,
			}
			p, err := given.Compute(render.Desired{Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if held := s.Guard == "impossible"; held != (tc.want != "") || !strings.Contains(Sentence(s.Reason), tc.want) {
				t.Errorf("%s\n%s by %q: %s, want %q", tc.reason, s.Action, s.Guard, s.Reason, tc.want)
			}
			if s.Guard == "impossible" && p.Approval != nil {
				t.Errorf("%s\nit offers the approval of an impossible update", tc.reason)
			}
		})
	}
}

// A new version of a package may contain such a definition.
func TestImpossibleByAPackage(t *testing.T) {
	before, after := given.CRD("buckets", "Bucket"), given.CRD("buckets", "Bucket")
	before.Object["spec"].(map[string]any)["scope"], after.Object["spec"].(map[string]any)["scope"] = "Namespaced", "Cluster"
	e, breaks := facts.NewReplacement(before, after)
	if !breaks {
		t.Fatal("nothing is tested")
	}
	provider := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": map[string]any{"name": "toy"}}}
	o := given.Wanted(t, provider)
	seen := given.Seen(facts.Upstream{})
	seen.Inventory.Entries = map[manifest.ID]inventory.Entry{o.ID: {UID: "u"}}
	seen.Objects[o.ID] = given.Live(provider, "u")
	seen.Trials = map[manifest.ID]facts.Trial{o.ID: {Live: provider, After: provider}}
	seen.Effects = []plan.Effect{e.MadeBy(o.ID, nil)}
	p := given.Computed(t, render.Desired{Owner: render.OwnerCrossplane, Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
	if s := p.Steps[0]; s.Guard != Impossible || !strings.Contains(Sentence(s.Reason), "its scope would change") || p.Approval != nil {
		t.Errorf("%s by %q: %s", s.Action, s.Guard, s.Reason)
	}
}

// A new version of a package may drop the webhook that converts stored objects.
func TestStoredByAPackage(t *testing.T) {
	definition := func(webhook bool) *unstructured.Unstructured {
		u := given.CRD("buckets", "Bucket")
		u.Object["spec"].(map[string]any)["versions"] = []any{map[string]any{"name": "v1", "served": true}, map[string]any{"name": "v2", "served": true, "storage": true}}
		u.Object["status"] = map[string]any{"storedVersions": []any{"v1", "v2"}}
		if webhook {
			u.Object["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "Webhook"}
		}
		return u
	}
	e, breaks := facts.NewReplacement(definition(true), definition(false))
	if !breaks {
		t.Fatal("nothing is tested")
	}
	provider := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": map[string]any{"name": "toy"}}}
	o := given.Wanted(t, provider)
	seen := given.Seen(facts.Upstream{})
	seen.Inventory.Entries = map[manifest.ID]inventory.Entry{o.ID: {UID: "u"}}
	seen.Objects[o.ID] = given.Live(provider, "u")
	seen.Trials = map[manifest.ID]facts.Trial{o.ID: {Live: provider, After: provider}}
	seen.Effects = []plan.Effect{e.MadeBy(o.ID, nil)}
	p := given.Computed(t, render.Desired{Owner: render.OwnerCrossplane, Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
	if s := p.Steps[0]; s.Action != plan.Hold || !strings.Contains(Sentence(s.Reason), "its conversion webhook would be dropped") {
		t.Errorf("%s by %q: %s", s.Action, s.Guard, Sentence(s.Reason))
	}
}

// An approval may be read before Headgate knows in which versions objects are stored. The plan with that answer must hold all the
// same.
func TestImpossibleAfterApproval(t *testing.T) {
	mrd := func(versions ...string) *unstructured.Unstructured {
		u := given.CRD("buckets", "Bucket")
		u.SetAPIVersion("apiextensions.crossplane.io/v1alpha1")
		u.SetKind("ManagedResourceDefinition")
		var list []any
		for i, v := range versions {
			list = append(list, map[string]any{"name": v, "served": true, "storage": i == len(versions)-1})
		}
		u.Object["spec"].(map[string]any)["versions"] = list
		return u
	}
	before, after := mrd("v1", "v2"), mrd("v2")
	o := given.Wanted(t, after)
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{o.ID: {UID: "u", Digest: "before"}}},
			Kinds:     given.Kinds,
		},
		Live: facts.Live{
			Objects: map[manifest.ID]*metav1.PartialObjectMetadata{o.ID: given.Live(after, "u")},
			Trials:  map[manifest.ID]facts.Trial{o.ID: {Live: before, After: after}},
		},
	}
	compute := func() plan.Plan {
		p, err := given.Compute(render.Desired{Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	seen.Approvals = approval.Given{inventory.OnSync: approval.Typed(compute().Approval.Digest)}
	p := compute()
	asked := question.Stored{Of: plan.CRD("buckets.example.org")}
	if open := p.Open(); len(open) != 1 || open[0] != asked {
		t.Errorf("an approved update asks %v, want %v", open, asked)
	}
	seen.Answers = question.Answers{asked: []string{"v1", "v2"}}
	if s := compute().Steps[0]; s.Guard != "impossible" {
		t.Errorf("%s by %q: %s", s.Action, s.Guard, s.Reason)
	}
}
