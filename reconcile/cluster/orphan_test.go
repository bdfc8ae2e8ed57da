package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourcedefinitions"}

// native returns a commit with MRDs, so that Crossplane makes the CRDs of some kinds.
func (w *world) native(t *testing.T, kinds ...string) render.Desired {
	t.Helper()
	objects := []*unstructured.Unstructured{namespace(w.sync.Namespace + "-app")}
	for _, kind := range kinds {
		objects = append(objects, thing(definitions.GroupVersion().String(), "ManagedResourceDefinition", "", w.crd(kind, "Cluster").GetName(), nil))
	}
	commit := want(t, objects...)
	commit.Owner = render.OwnerCrossplane
	for _, kind := range kinds {
		of := &catalogue.Definition{Name: w.crd(kind, "Cluster").GetName()}
		commit.Definitions = append(commit.Definitions, render.DecidedDefinition{Decision: activation.Decision{Definition: of}})
	}
	return commit
}

// lags plays a Crossplane that reacts late to everything, until the test ends. It makes definitions Active and takes over their
// CRDs some time after it has read them, and reports that even later. It notices the deletion of a definition only after the
// garbage collector removed the definition from the owners of its CRD, and adds it again.
func (w *world) lags(t *testing.T) {
	t.Helper()
	const late = 200 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() {
		stop()
		<-ended
	})
	config := rest.CopyConfig(w.config)
	config.QPS = -1
	its, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	owned := map[string]metav1.OwnerReference{} // the owners that it knows, by name
	going := map[types.UID]time.Time{}          // when the deletion of definitions began that it has not noticed yet
	own := func(name string, owner metav1.OwnerReference) error {
		body := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}]}}`, owner.APIVersion, owner.Kind, owner.Name, owner.UID)
		_, err := its.Resource(crds).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "crossplane"})
		return err
	}
	say := func(name, status, reason string) {
		_ = edit(ctx, its.Resource(definitions), name, fmt.Sprintf(`{"status":{"conditions":[{"type":"Established","status":%q,"reason":%q}]}}`, status, reason), "status")
	}
	w.serve(t, definitions, "ManagedResourceDefinition", "Cluster",
		map[string]any{"name": "State", "type": "string", "jsonPath": ".spec.state"},
		map[string]any{"name": "Established", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Established')].status"})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; time.Sleep(late / 2) {
			list, err := its.Resource(definitions).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for i := range list.Items {
				u := &list.Items[i]
				name := u.GetName()
				switch _, known := going[u.GetUID()]; {
				case owned[name].UID != u.GetUID() && u.GetDeletionTimestamp() == nil:
					if edit(ctx, its.Resource(definitions), name, `{"spec":{"state":"Active"}}`) != nil {
						continue
					}
					time.Sleep(late)
					owner := metav1.OwnerReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: name, UID: u.GetUID()}
					if own(name, owner) == nil {
						owned[name] = owner
						time.Sleep(late)
						say(name, "True", "EstablishedManagedResource")
					}
				case owned[name].UID == u.GetUID() && u.GetDeletionTimestamp() != nil && !known:
					going[u.GetUID()] = time.Now()
				}
			}
			for name, owner := range owned {
				crd, err := its.Resource(crds).Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					continue
				}
				since, goes := going[owner.UID]
				if len(crd.GetOwnerReferences()) == 0 && own(name, owner) == nil || goes && time.Since(since) > 2*late {
					delete(owned, name) // it has now noticed the deletion
					say(name, "False", "TerminatingManagedResource")
				}
			}
		}
	}()
}

// A definition that leaves Git leaves its CRD, and the objects of that kind, in the cluster. This holds if Crossplane reacts late,
// and if the process is killed before any write or after the last one. It also holds for every next event: the same commit, a
// commit that declares the definition again, or a destroy.
//
//test:long,unraced
func TestDefinitionLeavesItsCRD(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(t *testing.T, w *world, none, with render.Desired){
		"ForGood": func(t *testing.T, w *world, none, _ render.Desired) {
			t.Helper()
			settled(t, w.cluster(t, cluster.Options{}), none)
		},
		"WantedAgain": func(t *testing.T, w *world, _, with render.Desired) {
			t.Helper()
			settled(t, w.cluster(t, cluster.Options{}), with)
		},
		"Released": func(t *testing.T, w *world, none, _ render.Desired) {
			t.Helper()
			if result, err := reconcilerOf(w.cluster(t, cluster.Options{}), w).Destroy(t.Context(), plan.Orphaning); err != nil || result.Verdict.ExitCode != 0 {
				t.Fatalf("got %v, %v", ended(result), err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.lags(t)
			w.leaves(t, after)
		})
	}
}

// leaves kills passes that delete a definition, and fails if the definition's CRD does not stay.
func (w *world) leaves(t *testing.T, after func(t *testing.T, w *world, none, with render.Desired)) {
	t.Helper()
	none := w.native(t, "Stays") // a commit without any definition would be held
	finished := false
	for n := int64(1); !finished; n++ {
		if n > 30 {
			t.Fatal("a small change takes more than 30 writes")
		}
		kind := fmt.Sprintf("Round%d", n)
		with := w.native(t, "Stays", kind)
		crd, err := w.at(crds, "").Create(t.Context(), w.crd(kind, "Cluster"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		get := func() *unstructured.Unstructured {
			t.Helper()
			u, err := w.at(crds, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatalf("Killed before write %d, the CRD is to stay: %v", n, err)
			}
			return u
		}
		settled(t, w.cluster(t, cluster.Options{}), with)
		var left *unstructured.Unstructured
		comes := func(enough func(conditions []any) bool) {
			t.Helper()
			until(t, func() bool {
				if left, err = w.at(definitions, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{}); err != nil {
					return apierrors.IsNotFound(err)
				}
				conditions, _, _ := unstructured.NestedSlice(left.Object, "status", "conditions")
				return enough(conditions)
			})
		}
		comes(func([]any) bool { // then Crossplane is about to become the owner, or is the owner and has not reported it
			state, _, _ := unstructured.NestedString(left.Object, "spec", "state")
			return state == "Active" && (n%2 == 0 || len(get().GetOwnerReferences()) == 1)
		})
		finished = w.dies(t, dying(n, false), none, 8)
		comes(func(conditions []any) bool { // the report changes the definition, and a pass does not touch an object that changed after the observation
			return left.GetDeletionTimestamp() != nil || len(conditions) > 0
		})
		after(t, w, none, with)
		comes(func(conditions []any) bool {
			return get() != nil && left.GetDeletionTimestamp() == nil && len(conditions) > 0
		})
		time.Sleep(500 * time.Millisecond) // time for the garbage collector to act
		u := get()
		if u.GetUID() != crd.GetUID() || u.GetDeletionTimestamp() != nil || left == nil && len(u.GetOwnerReferences()) > 0 {
			t.Fatalf("Killed before write %d, the CRD must stay unchanged and without an owner: deleted %v, owned by %v", n, u.GetDeletionTimestamp(), u.GetOwnerReferences())
		}
		if left != nil && len(left.GetFinalizers()) > 0 {
			t.Fatalf("Killed before write %d, our finalizer is left: %q", n, left.GetFinalizers())
		}
	}
}

// established returns a commit without and one with a definition, and the CRD of the definition, once Crossplane has reported it as
// established. The report is Crossplane's last change of the definition, and a pass does not touch an object that changed after the
// observation.
func (w *world) established(t *testing.T) (none, with render.Desired, crd *unstructured.Unstructured) {
	t.Helper()
	w.lags(t)
	none, with = w.native(t, "Stays"), w.native(t, "Stays", "Bucket")
	crd = w.made(t, w.crd("Bucket", "Cluster"))
	settled(t, w.cluster(t, cluster.Options{}), with)
	until(t, func() bool {
		conditions, _, _ := unstructured.NestedSlice(w.mustGet(t, definitions, "", crd.GetName()).Object, "status", "conditions")
		return len(conditions) > 0
	})
	return none, with, crd
}

// If a pass was killed while it deleted a definition, a commit that declares the definition again restores it without our
// finalizer. With that finalizer, a user who deletes the definition would wait forever.
func TestDefinitionIsWantedAgain(t *testing.T) {
	w := newWorld(t)
	none, with, crd := w.established(t)
	get := func() *unstructured.Unstructured {
		t.Helper()
		return w.mustGet(t, definitions, "", crd.GetName())
	}
	finalized := func() bool { return len(get().GetFinalizers()) > 0 }
	for n := int64(1); !finalized(); n++ {
		if n > 10 {
			t.Fatal("nothing keeps the definition")
		}
		w.dies(t, dying(n, false), none, 1)
	}
	settled(t, w.cluster(t, cluster.Options{}), with)
	if u := get(); len(u.GetFinalizers()) > 0 || u.GetDeletionTimestamp() != nil {
		t.Errorf("It is as it was: finalizers %q, deleted %v", u.GetFinalizers(), u.GetDeletionTimestamp())
	}
}

// Crossplane may make an MRD the owner of its CRD once more right before the MRD is gone. Only the propagation policy then keeps the
// garbage collector from deleting the CRD.
func TestDefinitionIsOrphaned(t *testing.T) {
	w := newWorld(t)
	none, _, _ := w.established(t)
	var mu sync.Mutex
	var asked []metav1.DeleteOptions
	settled(t, clusterOf(t, fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.Method != http.MethodDelete || !strings.Contains(req.URL.Path, "/"+definitions.Resource+"/") {
			return next.RoundTrip(req)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		var options metav1.DeleteOptions
		if err := json.Unmarshal(body, &options); err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, options)
		return next.RoundTrip(req)
	}), w, cluster.Options{}), none)
	if len(asked) == 0 {
		t.Fatal("no definition was deleted")
	}
	for _, options := range asked {
		if p := options.PropagationPolicy; p == nil || *p != metav1.DeletePropagationOrphan {
			t.Errorf("an MRD is deleted with the propagation policy %v, want Orphan", p)
		}
	}
}

// Crossplane makes an MRD the owner of its CRD and then reports the MRD's deletion. A reader with the old CRD and the new MRD would
// delete the CRD.
func TestOwnersAreReadAfterTheReport(t *testing.T) {
	w := newWorld(t)
	w.serve(t, definitions, "ManagedResourceDefinition", "Cluster")
	crd := w.made(t, w.crd("Bucket", "Cluster"))
	mrd := w.made(t, thing(definitions.GroupVersion().String(), "ManagedResourceDefinition", "", crd.GetName(), map[string]any{"spec": map[string]any{"state": "Active"}}))
	var once sync.Once
	asking := false
	c := clusterOf(t, fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if asking && strings.HasSuffix(req.URL.Path, "/"+crd.GetName()) {
			once.Do(func() {
				w.patch(t, w.at(crds, ""), crd.GetName(), fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}]}}`, mrd.GetAPIVersion(), mrd.GetKind(), mrd.GetName(), mrd.GetUID()))
				if err := edit(t.Context(), w.at(definitions, ""), mrd.GetName(), `{"status":{"conditions":[{"type":"Established","status":"False","reason":"TerminatingManagedResource"}]}}`, "status"); err != nil {
					t.Error(err)
				}
			})
		}
		return resp, err
	}), w, cluster.Options{})
	if _, err := c.Observe(t.Context(), render.Desired{}); err != nil {
		t.Fatal(err)
	}
	asking = true
	q := question.Departs{Of: crossplane.MRD(crd.GetName())}
	answers, err := c.Answer(t.Context(), []question.Any{q})
	if a, _ := question.Get(question.Known{Answers: answers}, q); err != nil || !a.Takes || a.Established == crossplane.Terminating && !a.Owns {
		t.Errorf("The MRD waits, or its CRD loses it first; got %+v, %v", a, err)
	}
}
