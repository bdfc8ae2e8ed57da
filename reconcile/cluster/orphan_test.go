package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourcedefinitions"}

// native is a commit that has Crossplane make the CRDs of kinds.
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

// lags plays a Crossplane, until the test ends, that sees definitions go later than it sees that
// the garbage collector took them out of the owners of their CRDs, and makes them owners once more.
// It makes a CRD of each definition.
func (w *world) lags(t *testing.T) {
	t.Helper()
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
	owned := map[string]metav1.OwnerReference{} // by name, as far as it knows
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
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			list, err := its.Resource(definitions).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for i := range list.Items {
				if u := &list.Items[i]; owned[u.GetName()].UID != u.GetUID() && u.GetDeletionTimestamp() == nil {
					owner := metav1.OwnerReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), UID: u.GetUID()}
					if own(u.GetName(), owner) == nil {
						owned[u.GetName()] = owner
						say(u.GetName(), "True", "EstablishedManagedResource")
					}
				}
			}
			for name, owner := range owned {
				crd, err := its.Resource(crds).Get(ctx, name, metav1.GetOptions{})
				if err != nil || len(crd.GetOwnerReferences()) > 0 {
					continue
				}
				if own(name, owner) == nil { // it was late; now it knows
					delete(owned, name)
					say(name, "False", "TerminatingManagedResource")
				}
			}
		}
	}()
}

// A definition that leaves Git leaves its CRD, and what somebody may have stored in it by then, also
// where Crossplane is late, and wherever we were killed: before every write, and after the last.
func TestDefinitionLeavesItsCRD(t *testing.T) {
	w := newWorld(t)
	w.lags(t)
	none := w.native(t, "Stays") // a commit without any definition would look like a mistake
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
		settled(t, w.cluster(t, cluster.Options{}), with)
		until(t, func() bool {
			u, err := w.at(crds, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{})
			return err == nil && len(u.GetOwnerReferences()) == 1
		})

		finished = w.dies(t, dying(n, false), none, 8)
		settled(t, w.cluster(t, cluster.Options{}), none)
		until(t, func() bool {
			_, err := w.at(definitions, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		time.Sleep(500 * time.Millisecond) // the garbage collector would be at it
		u, err := w.at(crds, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatalf("Killed before write %d, the CRD is to stay: %v", n, err)
		}
		if u.GetUID() != crd.GetUID() || u.GetDeletionTimestamp() != nil || len(u.GetOwnerReferences()) > 0 {
			t.Fatalf("Killed before write %d, the CRD is to stay as it was, and to be nobody's: deleted %v, owned by %v", n, u.GetDeletionTimestamp(), u.GetOwnerReferences())
		}
	}
}

// Who wants a definition again that a pass was killed over gets it back, without our finalizer: with
// it, a person who deletes the definition would wait for ever.
func TestDefinitionIsWantedAgain(t *testing.T) {
	w := newWorld(t)
	w.lags(t)
	none, with := w.native(t, "Stays"), w.native(t, "Stays", "Bucket")
	crd, err := w.at(crds, "").Create(t.Context(), w.crd("Bucket", "Cluster"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	settled(t, w.cluster(t, cluster.Options{}), with)
	get := func() (u *unstructured.Unstructured) {
		t.Helper()
		u, err := w.at(definitions, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	until(t, func() bool {
		conditions, _, _ := unstructured.NestedSlice(get().Object, "status", "conditions")
		return len(conditions) > 0
	})
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
