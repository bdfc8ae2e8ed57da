package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// settled makes passes until nothing is left to write, and returns their actions, one line per pass.
func settled(t *testing.T, c *cluster.Cluster, commit render.Desired) []string {
	t.Helper()
	var all []string
	for range 8 {
		p := planned(t, c, commit)
		until(t, func() bool {
			if awaitsCrossplane(p) {
				p = planned(t, c, commit)
			}
			return !awaitsCrossplane(p)
		})
		if !p.Writes() {
			return all
		}
		done, err := c.Apply(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		var did []string
		for _, o := range done {
			if o.Err != nil {
				t.Fatalf("%s %s: %v", o.Action, o.ID, o.Err)
			}
			if o.Action != plan.Keep {
				did = append(did, string(o.Action)+" "+o.ID.Kind+" "+strings.SplitN(o.ID.Name, "-", 2)[0])
			}
		}
		all = append(all, strings.Join(did, ", "))
	}
	t.Fatalf("it never ends: %q", all)
	return nil
}

// awaitsCrossplane reports whether a plan waits until Crossplane has reported the deletion of an MRD.
func awaitsCrossplane(p plan.Plan) bool {
	return !p.Writes() && slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
		return slices.ContainsFunc(s.Waits, func(r reason.Reason) bool { return r.Code == reason.AwaitsCrossplane })
	})
}

// protecting returns a ConfigMap that depends on others and requests their protection.
func protecting(space, name string, on ...string) *unstructured.Unstructured {
	u := configMap(space, name, "1")
	for i, other := range on {
		on[i] = "/namespaces/" + space + "/ConfigMap/" + other
	}
	u.SetAnnotations(map[string]string{
		"config.kubernetes.io/depends-on": strings.Join(on, ", "),
		plan.ProtectAnnotation:            "true",
	})
	return u
}

var usages = schema.GroupVersionResource{Group: "protection.crossplane.io", Version: "v1beta1", Resource: "usages"}

// serveUsages makes the cluster serve Crossplane's Usages until the test ends, without Crossplane.
func (w *world) serveUsages(t *testing.T) {
	t.Helper()
	w.serve(t, usages, "Usage", "Namespaced")
}

// serve makes the cluster serve one of Crossplane's kinds until the test ends, without Crossplane.
func (w *world) serve(t *testing.T, of schema.GroupVersionResource, kind, scope string, columns ...any) {
	t.Helper()
	crd := w.crd(kind, scope)
	crd.SetName(of.GroupResource().String())
	if err := unstructured.SetNestedField(crd.Object, of.Group, "spec", "group"); err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	version := versions[0].(map[string]any)
	version["name"], version["additionalPrinterColumns"] = of.Version, columns
	if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	crossplane := clusterOf(t, w.config, &world{config: w.config, requests: w.requests, sync: inventory.Sync{Namespace: w.sync.Namespace, Name: "crossplane"}, live: w.live}, cluster.Options{})
	applied(t, crossplane, want(t, crd))
	if fixtures.Retire(t) {
		return
	}
	t.Cleanup(func() {
		if err := w.live.Resource(crds).Delete(context.Background(), crd.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		for over := time.Now().Add(fixtures.Patience); ; time.Sleep(100 * time.Millisecond) {
			_, gone := w.live.Resource(crds).Get(context.Background(), crd.GetName(), metav1.GetOptions{})
			seen, err := w.cluster(t, cluster.Options{}).Observe(context.Background(), render.Desired{})
			if _, served := seen.Kinds[schema.GroupKind{Group: of.Group, Kind: kind}]; err == nil && !served && apierrors.IsNotFound(gone) {
				return
			}
			if time.Now().After(over) {
				t.Fatalf("%s is served for ever: %v", kind, err)
			}
		}
	})
}

// A dependency that a user deletes by hand stays until its dependants are gone, and is then deleted, even if the process is killed
// at any point.
func TestProtectByFinalizer(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	maps := w.at(configMaps, space)
	finalizers := func(name string) []string { return w.mustGet(t, configMaps, space, name).GetFinalizers() }
	gone := func(name string) bool {
		_, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}
	c := w.cluster(t, cluster.Options{})
	home := namespace(space)
	all := want(t, home, configMap(space, "base", "1"), configMap(space, "stays", "1"), protecting(space, "user", "base"), protecting(space, "visitor", "stays"))
	settled(t, c, all)
	if got := finalizers("base"); len(got) != 1 {
		t.Fatalf("finalizers of base: %v", got)
	}
	if p := planned(t, c, all); p.Writes() || p.Remembers() {
		t.Errorf("a pass with nothing to do: %v", actions(p))
	}

	if err := maps.Delete(t.Context(), "base", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if gone("base") {
		t.Fatal("what is depended on was deleted by hand")
	}
	held := `{"metadata":{"finalizers":["example.org/later"]}}`
	if _, err := maps.Patch(t.Context(), "user", types.MergePatchType, []byte(held), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	left := want(t, home, configMap(space, "stays", "1"))
	if diff := cmp.Diff([]string{"prune (commit) ConfigMap/" + space + "/base", "prune (commit) ConfigMap/" + space + "/user", "prune (commit) ConfigMap/" + space + "/visitor"}, actions(planned(t, c, left))); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	for range 2 { // as often as it likes, and in processes without any memory of the previous one
		c = w.cluster(t, cluster.Options{})
		if _, err := c.Apply(t.Context(), planned(t, c, left)); err != nil {
			t.Fatal(err)
		}
		if gone("base") || gone("user") || len(finalizers("base")) == 0 {
			t.Fatalf("what is depended on went first: base is gone: %t, user is: %t", gone("base"), gone("user"))
		}
	}
	if _, err := maps.Patch(t.Context(), "user", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	settled(t, c, left)
	if !gone("base") || !gone("user") || !gone("visitor") {
		t.Error("they do not go once they can")
	}
	if got := finalizers("stays"); len(got) != 0 {
		t.Errorf("it has no dependants any more, and has the finalizers %v", got)
	}
}

// Where Crossplane serves Usages, Headgate protects with them, and also protects foreign objects.
func TestProtectByUsage(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	w.serveUsages(t)
	c := w.cluster(t, cluster.Options{})
	home := namespace(space)
	applied(t, c, want(t, home))
	if _, err := w.at(configMaps, space).Create(t.Context(), configMap(space, "foreign", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	user := protecting(space, "user", "base", "foreign")
	rest := []*unstructured.Unstructured{home} // so that the prunes are a small part of the objects
	for i := range 20 {
		rest = append(rest, configMap(space, fmt.Sprintf("rest-%d", i), "1"))
	}
	settled(t, c, want(t, append(rest, configMap(space, "base", "1"), user)...))
	list, err := w.at(usages, space).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var of []string
	for _, u := range list.Items {
		name, _, _ := unstructured.NestedString(u.Object, "spec", "of", "resourceRef", "name")
		of = append(of, name)
	}
	if slices.Sort(of); !slices.Equal(of, []string{"base", "foreign"}) {
		t.Errorf("there are Usages of %v", of)
	}
	if got := w.mustGet(t, configMaps, space, "base").GetFinalizers(); len(got) > 0 {
		t.Errorf("what a Usage protects has the finalizers %v, too", got)
	}
	if diff := cmp.Diff([]string{
		"prune ConfigMap user",
		"prune Usage headgate, prune Usage headgate",
		"prune ConfigMap base",
	}, settled(t, c, want(t, rest...))); diff != "" {
		t.Errorf("A Usage goes after what asked for it, and before what it protects.\npasses (-want +got):\n%s", diff)
	}
	w.mustGet(t, configMaps, space, "foreign")
}

// An object that leaves the sync without being deleted must not keep our finalizer. Otherwise a user's deletion would never finish.
func TestNothingKeepsOurFinalizer(t *testing.T) {
	t.Parallel()
	annotated := func(u *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
		u.SetAnnotations(map[string]string{key: value})
		return u
	}
	for name, tc := range map[string]struct {
		reason string
		leaves func(t *testing.T, w *world, c *cluster.Cluster, space string)
	}{
		"Orphaned": {
			reason: "The sync is destroyed and leaves the object.",
			leaves: func(t *testing.T, w *world, c *cluster.Cluster, _ string) {
				t.Helper()
				if result, err := reconcilerOf(c, w).Destroy(t.Context(), plan.Orphaning); err != nil || result.Verdict.ExitCode != 0 {
					t.Fatalf("got %v, %v", ended(result), err)
				}
			},
		},
		"Retained": {
			reason: "A user requests that the sync never deletes the object, and then deletes it.",
			leaves: func(t *testing.T, w *world, c *cluster.Cluster, space string) {
				t.Helper()
				settled(t, c, want(t, namespace(space)))
				if err := w.at(configMaps, space).Delete(t.Context(), "base", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				settled(t, c, want(t, namespace(space)))
			},
		},
		"Observed": {
			reason: "The object becomes observe-only before it leaves the commit.",
			leaves: func(t *testing.T, w *world, c *cluster.Cluster, space string) {
				t.Helper()
				observed := annotated(configMap(space, "base", "1"), inventory.PolicyAnnotation, string(inventory.Observable))
				applied(t, c, want(t, namespace(space), observed, protecting(space, "user", "base")))
				settled(t, c, want(t, namespace(space)))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace + "-app"
			c := w.cluster(t, cluster.Options{})
			settled(t, c, want(t, namespace(space), protecting(space, "user", "base"),
				annotated(configMap(space, "base", "1"), "cli-utils.sigs.k8s.io/on-remove", "keep")))
			if got := w.mustGet(t, configMaps, space, "base").GetFinalizers(); len(got) != 1 {
				t.Fatalf("nothing is tested: the finalizers are %v", got)
			}
			tc.leaves(t, w, c, space)
			u, err := w.at(configMaps, space).Get(t.Context(), "base", metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			if err == nil && len(u.GetFinalizers()) > 0 {
				t.Errorf("%s It keeps the finalizers %v", tc.reason, u.GetFinalizers())
			}
		})
	}
}
