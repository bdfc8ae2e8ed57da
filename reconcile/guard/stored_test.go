package guard

import (
	"errors"
	"strings"
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

func TestStored(t *testing.T) {
	// of returns a CRD or MRD with some versions. The last one is the storage version.
	of := func(kind string, webhook bool, versions ...string) *unstructured.Unstructured {
		u := given.CRD("buckets", "Bucket")
		if kind == "MRD" {
			u.SetAPIVersion("apiextensions.crossplane.io/v1alpha1")
			u.SetKind("ManagedResourceDefinition")
		}
		spec := u.Object["spec"].(map[string]any)
		var list []any
		for i, v := range versions {
			list = append(list, map[string]any{"name": v, "storage": i == len(versions)-1})
		}
		spec["versions"] = list
		if webhook {
			spec["conversion"] = map[string]any{"strategy": "Webhook"}
		}
		return u
	}
	storing := func(u *unstructured.Unstructured, versions ...any) *unstructured.Unstructured {
		u.Object["status"] = map[string]any{"storedVersions": versions}
		return u
	}
	asked := question.Stored{Of: plan.CRD("buckets.example.org")}
	answered := func(a any) question.Answers { return question.Answers{asked: a} }
	const drops = "its conversion webhook would be dropped, and objects may be stored in v1, which could then not be read: " +
		"set conversion: Inject, or migrate them to v2 and take it out of status.storedVersions"
	const gone = "it no longer declares v1, which status.storedVersions of the CRD buckets.example.org names: objects may be stored in it. " +
		"Declare v1 again. Then write every object back unchanged (kubectl get buckets.example.org -A -o yaml | kubectl replace -f -), and take the version out of the status: " +
		`kubectl patch crd buckets.example.org --subresource=status --type=merge -p '{"status":{"storedVersions":["v2"]}}'`
	cases := map[string]struct {
		reason      string
		live, after *unstructured.Unstructured
		err         error
		answers     question.Answers
		stance      plan.Stance
		active      bool   // whether the definition is active in the base of a comparison
		want        string // reason of the hold or of the allowed step
		held        bool
	}{
		"Dropped": {
			reason: "Both versions are declared, and only the webhook can convert objects in the older one.",
			live:   storing(of("CRD", true, "v1", "v2"), "v1", "v2"), after: of("CRD", false, "v1", "v2"), want: drops, held: true,
		},
		"DroppedWithTheVersion": {
			reason: "The API server refuses the update, and the reason gives advice.",
			live:   storing(of("CRD", true, "v1", "v2"), "v1", "v2"), after: of("CRD", false, "v2"), err: errors.New("status.storedVersions[0]: Invalid value"),
			want: gone, held: true,
		},
		"Migrated": {
			reason: "No object is stored in another version.",
			live:   storing(of("CRD", true, "v1", "v2"), "v2"), after: of("CRD", false, "v1", "v2"),
		},
		"Kept":       {reason: "The webhook stays.", live: storing(of("CRD", true, "v1", "v2"), "v1", "v2"), after: of("CRD", true, "v1", "v2")},
		"NeverThere": {reason: "The CRD never had a webhook.", live: storing(of("CRD", false, "v1", "v2"), "v1", "v2"), after: of("CRD", false, "v1", "v2")},
		"Offline": {
			reason: "A comparison of commits does not know the stored versions.", stance: plan.Comparing,
			live: of("CRD", true, "v1", "v2"), after: of("CRD", false, "v1", "v2"),
			want: "its conversion webhook is dropped; whether objects are stored in another version is not known without a cluster",
		},
		"DefinitionUnasked": {
			reason: "Only the CRD that Crossplane makes for an MRD lists the stored versions.",
			live:   of("MRD", true, "v1", "v2"), after: of("MRD", false, "v1", "v2"), want: "Headgate has not read in which versions objects are stored", held: true,
		},
		"DefinitionUnknown": {
			reason: "If the CRD cannot be read, objects may be stored in any version.", answers: answered(given.Unknown(reason.Failed.With("forbidden"))),
			live: of("MRD", true, "v1", "v2"), after: of("MRD", false, "v1", "v2"),
			want: "its versions, or its conversion webhook, would go, and Headgate cannot read in which versions objects are stored (forbidden)", held: true,
		},
		"Definition": {
			reason: "For an MRD, the result is the same as for a CRD.", answers: answered([]string{"v1", "v2"}),
			live: of("MRD", true, "v1", "v2"), after: of("MRD", false, "v1", "v2"), want: drops, held: true,
		},
		"DefinitionVersionGoes": {
			reason: "Crossplane could not apply the CRD, and otherwise the objects would become unreadable.", answers: answered([]string{"v1", "v2"}),
			live: of("MRD", false, "v1", "v2"), after: of("MRD", false, "v2"), held: true,
			want: gone,
		},
		"DefinitionVersionGoesOffline": {
			reason: "A comparison of commits does not know the stored versions.", stance: plan.Comparing, active: true,
			live: of("MRD", false, "v1", "v2"), after: of("MRD", false, "v2"),
			want: "it declares fewer versions; whether objects are stored in one that goes is not known without a cluster; " +
				"its schema breaks: v1 the version is removed; whether custom resources exist is not known without a cluster, and a pass holds it if any do",
		},
		"InactiveVersionGoesOffline": {
			reason: "The base's inactive definition has no stored objects.", stance: plan.Comparing,
			live: of("MRD", false, "v1", "v2"), after: of("MRD", false, "v2"),
		},
		"DefinitionWithoutCRD": {
			reason: "Without a CRD, no objects are stored.", answers: answered([]string(nil)),
			live: of("MRD", true, "v1", "v2"), after: of("MRD", false, "v1", "v2"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := given.Wanted(t, tc.after)
			trial := facts.Trial{Live: tc.live, After: tc.after, Err: tc.err}
			if tc.err != nil {
				trial.After = nil
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
				Answers:  tc.answers,
				Upstream: facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{"buckets.example.org": {Active: tc.active}}},
			}
			p, err := given.Compute(render.Desired{Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if diff := cmp.Diff(tc.want, Sentence(s.Reason)); diff != "" || (s.Action == plan.Hold) != tc.held {
				t.Errorf("%s\n%s, reason (-want +got):\n%s", tc.reason, s.Action, diff)
			}
			if got := askedIn(p); got != "" && !strings.HasPrefix(got, "storage") {
				t.Errorf("%s\nAn approval of a broken schema does not cover stored versions. It asks about %q", tc.reason, got)
			}
			if name == "DefinitionUnasked" && !cmp.Equal(p.Open(), []question.Any{asked}) {
				t.Errorf("it asks %v", p.Open())
			}
		})
	}
}
