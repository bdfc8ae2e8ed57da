package guard

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSchemas(t *testing.T) {
	// of returns a CRD or MRD whose objects have some fields.
	of := func(kind, scope string, names map[string]any, fields ...string) *unstructured.Unstructured {
		u := given.CRD("buckets", "Bucket")
		if kind == "MRD" {
			u.SetAPIVersion("apiextensions.crossplane.io/v1alpha1")
			u.SetKind("ManagedResourceDefinition")
		}
		properties := map[string]any{}
		for _, f := range fields {
			properties[f] = map[string]any{"type": "string"}
		}
		u.Object["spec"] = map[string]any{
			"group": "example.org", "scope": scope, "names": names,
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "properties": properties},
			}}},
		}
		return u
	}
	refused := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "False"}}}
		return u
	}
	names := map[string]any{"kind": "Bucket", "plural": "buckets"}
	shorter := map[string]any{"kind": "Bucket", "plural": "buckets", "shortNames": []any{"b"}}
	asked := question.Dependents{Of: plan.CRD("buckets.example.org")}
	answered := func(a any) question.Answers { return question.Answers{asked: a} }
	active := map[string]crossplane.LiveDefinition{"buckets.example.org": {Active: true}}
	cases := map[string]struct {
		reason      string
		live, after *unstructured.Unstructured
		answers     question.Answers
		upstream    map[string]crossplane.LiveDefinition
		stance      plan.Stance
		want        string
		held        bool
	}{
		"Added": {reason: "An added field is optional.", live: of("CRD", "Namespaced", names, "a"), after: of("CRD", "Namespaced", names, "a", "b")},
		"InUse": {
			reason: "The API server would drop the field from every object that is written.", answers: answered(question.Counted{Count: 2, Example: "Bucket team-a/logs"}),
			live: of("CRD", "Namespaced", names, "a", "b"), after: of("CRD", "Namespaced", names, "a"),
			want: "its schema breaks: v1 b is removed; 2 custom resources exist, for example Bucket team-a/logs: change them first, or approve this", held: true,
		},
		"Many": {
			reason: "A reason with many changes stays one sentence.", answers: answered(question.Counted{Count: 1}),
			live: of("CRD", "Namespaced", names, "a", "b", "c", "d", "e"), after: of("CRD", "Namespaced", names),
			want: "its schema breaks: v1 a is removed, v1 b is removed, v1 c is removed, and 2 more; 1 custom resource exists: change them first, or approve this", held: true,
		},
		"Unused": {
			reason: "No object uses the definition.", answers: answered(question.Counted{}),
			live: of("CRD", "Namespaced", names, "a", "b"), after: of("CRD", "Namespaced", names, "a"),
		},
		"Uncounted": {
			reason: "Objects that have not been counted may exist.", live: of("CRD", "Namespaced", names, "a"), after: of("CRD", "Namespaced", names),
			want: "its schema breaks: v1 a is removed; Headgate has not counted the custom resources", held: true,
		},
		"Uncountable": {
			reason: "If objects cannot be counted, the definition counts as in use.", answers: answered(given.Unknown(reason.Failed.With("forbidden"))),
			live: of("CRD", "Namespaced", names, "a"), after: of("CRD", "Namespaced", names),
			want: "its schema breaks: v1 a is removed; custom resources cannot be counted (forbidden), so it counts as in use", held: true,
		},
		"Offline": {
			reason: "A comparison of commits knows no objects, so the reason tells the reviewer.", stance: plan.Comparing,
			live: of("CRD", "Namespaced", names, "a"), after: of("CRD", "Namespaced", names),
			want: "its schema breaks: v1 a is removed; whether custom resources exist is not known without a cluster, and a pass holds it if any do",
		},
		"Scope": {
			reason: "A new scope is refused, whether objects exist or not.", stance: plan.Comparing,
			live: of("CRD", "Namespaced", names, "a"), after: of("CRD", "Cluster", names, "a"),
			want: `its scope would change from "Namespaced" to "Cluster", which the API server refuses while the CustomResourceDefinition exists. Revert that, or delete the definition once nothing uses it`, held: true,
		},
		"NeverServed": {
			reason: "Another CRD has the same kind, so a new name is the way out, and no objects of this CRD exist.",
			live:   refused(of("CRD", "Namespaced", names, "a")), after: of("CRD", "Cluster", map[string]any{"kind": "Pail", "plural": "buckets"}),
		},
		"NamesOfCRD": {reason: "The API server accepts new short names of a CRD.", live: of("CRD", "Namespaced", names), after: of("CRD", "Namespaced", shorter)},
		"NamesOfDefinition": {
			reason: "Crossplane refuses the change permanently, and the whole package with it.",
			live:   of("MRD", "Namespaced", names), after: of("MRD", "Namespaced", shorter),
			want: `its names.shortNames would change from nothing to ["b"], which the API server refuses while the ManagedResourceDefinition exists. Revert that, or delete the definition once nothing uses it`, held: true,
		},
		"InactiveDefinition": {reason: "An inactive definition has no objects.", live: of("MRD", "Namespaced", names, "a"), after: of("MRD", "Namespaced", names)},
		"ActiveDefinition": {
			reason: "Crossplane applies the change to the CRD.", upstream: active, answers: answered(question.Counted{Count: 1, Example: "Bucket team-a/logs"}),
			live: of("MRD", "Namespaced", names, "a"), after: of("MRD", "Namespaced", names),
			want: "its schema breaks: v1 a is removed; 1 custom resource exists, for example Bucket team-a/logs: change them first, or approve this", held: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := given.Wanted(t, tc.after)
			seen := facts.Observed{
				Ground: facts.Ground{
					Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{o.ID: {UID: "u", Digest: "before"}}},
					Kinds:     given.Kinds,
					Stance:    tc.stance,
				},
				Live: facts.Live{
					Objects: map[manifest.ID]*metav1.PartialObjectMetadata{o.ID: given.Live(tc.after, "u")},
					Trials:  map[manifest.ID]facts.Trial{o.ID: {Live: tc.live, After: tc.after}},
				},
				Answers:  tc.answers,
				Upstream: facts.Upstream{Definitions: tc.upstream},
			}
			p, err := given.Compute(render.Desired{Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if diff := cmp.Diff(tc.want, Sentence(s.Reason)); diff != "" || (s.Action == plan.Hold) != tc.held {
				t.Errorf("%s\n%s, reason (-want +got):\n%s", tc.reason, s.Action, diff)
			}
			asks := map[string]string{"InUse": "breaks up to 2", "Many": "breaks up to 1", "ActiveDefinition": "breaks up to 1", "Uncounted": "uncounted", "Uncountable": "uncounted"}
			if got := askedIn(p); got != asks[name] {
				t.Errorf("%s\nAn approval covers what was counted. It asks about %q, want %q", tc.reason, got, asks[name])
			}
			if name == "Uncounted" && !cmp.Equal(p.Open(), []question.Any{asked}) {
				t.Errorf("it asks %v", p.Open())
			}
		})
	}
}
