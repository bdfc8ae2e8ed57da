package cluster_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A CRD that remains after its definition left the commit is kept and reported in every pass. Headgate prunes it only if the sync
// deactivates definitions or is destroyed, and only once nothing uses it.
func TestCRDThatADefinitionLeft(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]func(t *testing.T, w *world, crd *unstructured.Unstructured, with render.Desired){
		"Committed": func(t *testing.T, w *world, crd *unstructured.Unstructured, with render.Desired) {
			t.Helper()
			w.lags(t)
			settled(t, w.cluster(t, cluster.Options{}), with)
			until(t, func() bool {
				u, err := w.at(definitions, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{})
				conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
				return err == nil && len(conditions) > 0
			})
		},
		"ByHand": func(t *testing.T, w *world, crd *unstructured.Unstructured, with render.Desired) {
			t.Helper()
			w.serve(t, definitions, "ManagedResourceDefinition", "Cluster",
				map[string]any{"name": "State", "type": "string", "jsonPath": ".spec.state"},
				map[string]any{"name": "Established", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Established')].status"})
			settled(t, w.cluster(t, cluster.Options{}), with)
			orphan := metav1.DeletePropagationOrphan
			if err := w.at(definitions, "").Delete(t.Context(), crd.GetName(), metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
				t.Fatal(err)
			}
			until(t, func() bool {
				_, err := w.at(definitions, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			none, with := w.native(t, "Stays"), w.native(t, "Stays", "Bucket")
			crd, err := w.at(crds, "").Create(t.Context(), w.crd("Bucket", "Cluster"), metav1.CreateOptions{FieldManager: "crossplane"})
			if err != nil {
				t.Fatal(err)
			}
			leaves(t, w, crd, with)
			reconciler := reconcilerOf(w.cluster(t, cluster.Options{}), w)
			reconciler.Options.Owner = render.OwnerCrossplane
			result, _, err := reconciler.Carry(t.Context(), reconcile.Task{Render: func(context.Context) (render.Desired, error) { return none, nil }})
			if err != nil {
				t.Fatal(err)
			}
			told := slices.DeleteFunc(slices.Clone(result.Findings), func(f manifest.Finding) bool { return f.Rule != "crd-left-alone" })
			if len(told) != 1 || !strings.Contains(told[0].Fix, "kubectl delete crd "+crd.GetName()) {
				t.Errorf("The pass tells once what stays, and what to do: %+v", result.Findings)
			}
			step := func(terms facts.Terms) plan.Step {
				t.Helper()
				p := planned(t, w.cluster(t, cluster.Options{Terms: terms}), none)
				i := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.ID == plan.CRD(crd.GetName()) })
				if i < 0 {
					t.Fatalf("nothing mentions the CRD: %v", actions(p))
				}
				return p.Steps[i]
			}
			if s := step(facts.Terms{}); s.Action != plan.Keep || s.Guard != plan.Final || s.Reason.Code != reason.LeftByDefinition {
				t.Errorf("It is kept: %s %q %s", s.Action, s.Guard, s.Reason)
			}
			w.made(t, w.instance("Bucket", "", "logs"))
			if s := step(facts.Terms{Deactivate: true}); s.Action != plan.Hold || s.Guard != "in use" {
				t.Errorf("Something uses it: %s %q %s", s.Action, s.Guard, s.Reason)
			}
			destroyed, err := reconciler.Destroy(t.Context(), plan.Destroying)
			if err != nil || destroyed.Verdict.ExitCode == 0 {
				t.Errorf("A destroy asks, too: %v, %+v", err, destroyed.Verdict)
			}
			w.mustGet(t, crds, "", crd.GetName())
			if err := w.at(w.resource("Bucket"), "").Delete(t.Context(), "logs", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if s := step(facts.Terms{Deactivate: true}); s.Action != plan.Prune || !s.Counts() {
				t.Errorf("Nothing uses it, and the guard many counts it: %s %q %s", s.Action, s.Guard, s.Reason)
			}
			applied(t, w.cluster(t, cluster.Options{Terms: facts.Terms{Deactivate: true}}), none)
			until(t, func() bool {
				_, err := w.at(crds, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
		})
	}
}
