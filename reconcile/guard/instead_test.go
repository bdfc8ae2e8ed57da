package guard

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// A definition that cannot be deactivated is updated instead, because its objects need the controllers of the new version. Such an
// update must pass the guards of every other update: users would lose fields of the objects that prevent the deactivation.
func TestUpdatesInsteadOfDeactivations(t *testing.T) {
	id := plan.CRD(given.Buckets)
	commit := func(policy string, fields ...string) render.Desired {
		properties := ""
		for _, f := range fields {
			properties += f + ": {type: string}, "
		}
		return given.Desired(t, render.OwnerHeadgate, map[string]string{
			"policy.yaml": given.Policy("team", policy),
			"package/crds/buckets.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {` + strings.TrimSuffix(properties, ", ") + `}}}}
`,
		})
	}
	inUse := question.Counted{Count: 1, Example: "Bucket logs"}
	cases := map[string]struct {
		reason  string
		answer  any
		fields  []string // of the new version; the old one has a and b
		edit    func(live *metav1.PartialObjectMetadata)
		want    plan.Action
		guard   plan.GuardName
		because string
	}{
		"Unused":  {reason: "Nothing prevents the deactivation.", fields: []string{"a"}, want: plan.Prune},
		"Gains":   {reason: "The objects need the new version.", answer: inUse, fields: []string{"a", "b", "c"}, want: plan.Update, guard: plan.Final, because: "Bucket logs"},
		"Breaks":  {reason: "The object would lose the field b.", answer: inUse, fields: []string{"a"}, want: plan.Hold, guard: "schema", because: "b is removed"},
		"Unknown": {reason: "Headgate cannot count the objects, so they may lose the field b.", answer: given.Unknown(reason.Failed.With("forbidden")), fields: []string{"a"}, want: plan.Hold, guard: "schema", because: "b is removed"},
		"Paused": {reason: "A user paused the CRD.", answer: inUse, fields: []string{"a", "b", "c"}, want: plan.Hold, guard: "paused", edit: func(live *metav1.PartialObjectMetadata) {
			live.Annotations[crossplane.PausedAnnotation] = "true"
		}},
		"OtherOwner": {reason: "Another tool owns the CRD now.", answer: inUse, fields: []string{"a", "b", "c"}, want: plan.Hold, guard: NotOurs, edit: func(live *metav1.PartialObjectMetadata) {
			live.Labels, live.Annotations, live.UID = map[string]string{"app.kubernetes.io/managed-by": "Helm"}, map[string]string{"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "n"}, "2"
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			base, head := commit(given.Buckets, "a", "b"), commit("queues.example.org", tc.fields...)
			crd := func(of render.Desired) *unstructured.Unstructured {
				t.Helper()
				i := slices.IndexFunc(of.Definitions, func(d render.DecidedDefinition) bool { return d.Name == given.Buckets })
				o, err := of.Definitions[i].CRD()
				if err != nil {
					t.Fatal(err)
				}
				u, err := o.Content()
				if err != nil {
					t.Fatal(err)
				}
				return u
			}
			seen := inCluster(t, base)
			seen.Trials = map[manifest.ID]facts.Trial{id: {Live: crd(base), After: crd(head)}}
			if tc.answer == nil {
				tc.answer = question.Counted{}
			}
			for _, of := range []manifest.ID{id, crossplane.MRD(given.Buckets)} {
				seen.Answers[question.Dependents{Of: of}] = tc.answer
			}
			if tc.edit != nil {
				tc.edit(seen.Objects[id])
			}
			p, steps := given.Steps(t, head, seen, Guarding{}.Guards()...)
			s := steps["CustomResourceDefinition "+given.Buckets]
			if s.Action != tc.want || s.Guard != tc.guard || !strings.Contains(Sentence(s.Reason), tc.because) {
				t.Errorf("%s\n%s by %q because %q, want %s by %q because %q", tc.reason, s.Action, s.Guard, Sentence(s.Reason), tc.want, tc.guard, tc.because)
			}
			if asks := tc.guard == "schema"; asks != (p.Approval != nil) {
				t.Errorf("%s\nit asks for the approval %+v", tc.reason, p.Approval)
			} else if asks {
				seen.Approvals = approval.Given{inventory.OnSync: approval.UpTo(p.Approval.UpTo, p.Approval.Digest)}
				_, steps := given.Steps(t, head, seen, Guarding{}.Guards()...)
				if s := steps["CustomResourceDefinition "+given.Buckets]; s.Action != plan.Update || !s.Approved {
					t.Errorf("%s\nA person approved it, but: %s %q", tc.reason, s.Action, Sentence(s.Reason))
				}
			}
		})
	}
}

// inCluster returns a cluster in which Headgate has applied a commit, for a sync that deactivates definitions.
func inCluster(t *testing.T, base render.Desired) facts.Observed {
	t.Helper()
	seen := given.Owning(t)
	seen.Terms.Deactivate = true
	seen.Inventory.Owner = base.Owner
	for _, o := range base.Objects {
		live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.ID.Namespace, Name: o.ID.Name, UID: types.UID(o.ID.String()),
			Labels: map[string]string{inventory.SyncLabel: given.Sync.Key()}, Annotations: map[string]string{inventory.InventoryAnnotation: given.Sync.Key()},
		}}
		live.APIVersion, live.Kind = o.APIVersion, o.ID.Kind
		seen.Objects[o.ID] = live
		seen.Inventory.Entries[o.ID] = plan.Applied(live, given.Sync.Digest(o))
	}
	seen.Inventory = record.Settled(given.Computed(t, base, seen, Guarding{}.Guards()...), seen.Inventory, nil)
	seen.Answers = question.Answers{}
	for _, q := range given.Computed(t, render.Desired{Owner: base.Owner}, seen, Guarding{}.Guards()...).Open() {
		seen.Answers[q] = q.Nothing()
	}
	return seen
}
