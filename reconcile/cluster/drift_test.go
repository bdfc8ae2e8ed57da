package cluster_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// patch is what another person does with kubectl edit.
func (w *world) patch(t *testing.T, at dynamic.ResourceInterface, name, body string, subresources ...string) {
	t.Helper()
	if err := edit(t.Context(), at, name, body, subresources...); err != nil {
		t.Fatal(err)
	}
}

func edit(ctx context.Context, at dynamic.ResourceInterface, name, body string, subresources ...string) error {
	_, err := at.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "somebody"}, subresources...)
	return err
}

func (w *world) at(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	return w.live.Resource(gvr).Namespace(namespace)
}

func TestEveryEditIsFound(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	crd := w.crd("Bucket", "Namespaced")
	bucket := w.instance("Bucket", space, "logs")
	commit := want(t, namespace(space), crd, bucket, configMap(space, "settings", "1"))
	c := w.cluster(t, cluster.Options{})
	applied(t, c, commit)

	buckets, settings := w.at(w.resource("Bucket"), space), w.at(configMaps, space)
	const logs, plainMap, theCRD = "Bucket.%g/%s/logs", "ConfigMap/%s/settings", "CustomResourceDefinition.apiextensions.k8s.io/buckets.%g"
	cases := map[string]struct {
		reason string
		edit   func(ctx context.Context) error
		want   []string // actions
	}{
		"Spec": {
			reason: "An edit of what we applied moves the generation.",
			edit:   func(ctx context.Context) error { return edit(ctx, buckets, "logs", `{"spec":{"size":7}}`) },
			want:   []string{"update (drift) " + logs},
		},
		"SpecOfCRD": {
			reason: "The same for a CRD.",
			edit: func(ctx context.Context) error {
				return edit(ctx, w.at(crds, ""), crd.GetName(), `{"spec":{"names":{"kind":"Bucket","plural":"buckets","shortNames":["bu"]}}}`)
			},
			want: nil, // a field that we do not own: nothing of ours changed
		},
		"LabelRemoved": {
			reason: "An object that lost our label is not in the labelled list, and is read by name.",
			edit: func(ctx context.Context) error {
				return edit(ctx, buckets, "logs", `{"metadata":{"labels":{"`+plan.SyncLabel+`":null}}}`)
			},
			want: []string{"update (drift) " + logs},
		},
		"AnnotationEdited": {
			reason: "Our annotation is part of what we applied.",
			edit: func(ctx context.Context) error {
				return edit(ctx, w.at(crds, ""), crd.GetName(), `{"metadata":{"annotations":{"`+plan.InventoryAnnotation+`":null}}}`)
			},
			want: []string{"update (drift) " + theCRD},
		},
		"OwnerReferenceAdded": {
			reason: "An owner reference makes the garbage collector take an object along; Crossplane's makes it foreign.",
			edit: func(ctx context.Context) error {
				return edit(ctx, w.at(crds, ""), crd.GetName(), `{"metadata":{"ownerReferences":[{"apiVersion":"pkg.crossplane.io/v1","kind":"ProviderRevision","name":"aws-1","uid":"00000000-0000-0000-0000-000000000001"}]}}`)
			},
			want: []string{"hold (not ours) " + theCRD},
		},
		"ManagedFieldsWiped": {
			reason: "Without our entry a field that leaves Git would stay; so we apply once more.",
			edit: func(ctx context.Context) error {
				return edit(ctx, buckets, "logs", `{"metadata":{"managedFields":[{}]}}`)
			},
			want: []string{"update (drift) " + logs},
		},
		"Deleted": {
			reason: "What somebody deleted comes back.",
			edit: func(ctx context.Context) error {
				return buckets.Delete(ctx, "logs", metav1.DeleteOptions{})
			},
			want: []string{"create (drift) " + logs},
		},
		"Recreated": {
			reason: "An object of the same name and content is another object: without our marks.",
			edit: func(ctx context.Context) error {
				gone := buckets.Delete(ctx, "logs", metav1.DeleteOptions{})
				_, err := buckets.Create(ctx, bucket, metav1.CreateOptions{})
				return errors.Join(gone, err)
			},
			want: []string{"update (drift) " + logs},
		},
		"NoGeneration": {
			reason: "A ConfigMap has no generation; any write moves its resourceVersion.",
			edit:   func(ctx context.Context) error { return edit(ctx, settings, "settings", `{"data":{"key":"2"}}`) },
			want:   []string{"update (drift) " + plainMap},
		},
		"OthersField": {
			reason: "A field that we do not apply is not ours to correct; the look at it is remembered.",
			edit:   func(ctx context.Context) error { return edit(ctx, settings, "settings", `{"data":{"other":"2"}}`) },
			want:   nil,
		},
		"Status": {
			reason: "A status write must not even cause a look.",
			edit: func(ctx context.Context) error {
				return edit(ctx, buckets, "logs", `{"status":{"phase":"ready"}}`, "status")
			},
			want: nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.edit(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.requests.Reset()
			p := planned(t, c, commit)
			if diff := cmp.Diff(w.named(space, tc.want), actions(p)); diff != "" {
				t.Errorf("%s\nsteps (-want +got):\n%s", tc.reason, diff)
			}
			if tried := w.requests.Counts()["DRY-RUN PATCH"]; name == "Status" && tried != 0 {
				t.Errorf("%s\ngot %d dry runs", tc.reason, tried)
			}
			w.heal(t, c, commit, p)
			w.requests.Reset()
			if after := planned(t, c, commit); len(actions(after)) > 0 || after.Remembers() || w.requests.Counts()["DRY-RUN PATCH"] > 0 {
				t.Errorf("After a pass nothing is left to do, look at or remember.\ngot %v, remembers %v, %v", actions(after), after.Remembers(), w.requests.Counts())
			}
		})
	}
}

// named fills in the group and the namespace.
func (w *world) named(space string, lines []string) []string {
	var named []string
	for _, l := range lines {
		l = strings.ReplaceAll(l, "%g", w.group)
		named = append(named, strings.ReplaceAll(l, "%s", space))
	}
	return named
}

// heal applies the plan. What an edit made somebody else's, which we do not force, goes:
// a person deletes the object, or takes the owner reference back.
func (w *world) heal(t *testing.T, c *cluster.Cluster, commit render.Desired, p plan.Plan) {
	t.Helper()
	for _, s := range p.Steps {
		if s.Action == plan.Hold {
			w.patch(t, w.at(crds, ""), s.ID.Name, `{"metadata":{"ownerReferences":null}}`)
			return
		}
	}
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range done {
		var conflict *cluster.ConflictError
		switch {
		case errors.As(o.Err, &conflict):
			gvr := w.resource(o.ID.Kind)
			if o.ID.Group == "" {
				gvr = configMaps
			}
			if err := w.at(gvr, o.ID.Namespace).Delete(t.Context(), o.ID.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			applied(t, c, commit)
		case o.Err != nil || o.NotReady != "":
			t.Fatalf("%s %s: %v %s", o.Action, o.ID, o.Err, o.NotReady)
		}
	}
}

func TestConflictIsNamed(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	mine := configMap(space, "settings", "1")
	c := w.cluster(t, cluster.Options{TryCreates: true})
	applied(t, c, want(t, namespace(space), mine))

	theirs := configMap(space, "settings", "2")
	if _, err := w.at(configMaps, space).Apply(t.Context(), "settings", theirs, metav1.ApplyOptions{FieldManager: "kubectl", Force: true}); err != nil {
		t.Fatal(err)
	}
	p := planned(t, c, want(t, namespace(space), mine, configMap(space, "other", "1")))
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	const reason = "A conflict is the outcome of its object, names manager and fields, and stops nothing else."
	var texts []string
	for _, o := range done {
		text := "ok"
		if o.Err != nil {
			if _, ok := errors.AsType[*cluster.ConflictError](o.Err); !ok {
				t.Errorf("%s\ngot %T %v", reason, o.Err, o.Err)
			}
			text = o.Err.Error()
		}
		texts = append(texts, o.ID.Name+": "+text)
	}
	if diff := cmp.Diff([]string{"other: ok", "settings: conflict with kubectl over .data.key"}, texts); diff != "" {
		t.Errorf("%s\noutcomes (-want +got):\n%s", reason, diff)
	}
	live, err := w.at(configMaps, space).Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if value, _, _ := unstructured.NestedString(live.Object, "data", "key"); value != "2" {
		t.Errorf("Nothing is forced: want the other's value, got %q", value)
	}

	p = planned(t, c, want(t, namespace(space), mine, configMap(space, "other", "1")))
	w.requests.Reset()
	if done, err = c.Apply(t.Context(), p); err != nil || len(done) != 1 || done[0].Err == nil || w.requests.Total() > 0 {
		t.Errorf("A conflict that stays costs nothing, got %v, %v, %v", done, err, w.requests.Log())
	}
}

func TestAdoption(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	for _, u := range []*unstructured.Unstructured{configMap(space, "free", "1"), configMap(space, "helms", "1")} {
		if u.GetName() == "helms" {
			u.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "app", "meta.helm.sh/release-namespace": "prod"})
		} else if _, err := w.at(namespaces, "").Create(t.Context(), namespace(space), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.at(configMaps, space).Create(t.Context(), u, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
			t.Fatal(err)
		}
	}
	c := w.cluster(t, cluster.Options{})
	commit := want(t, configMap(space, "free", "1"), configMap(space, "helms", "1"))
	p := planned(t, c, commit)
	if diff := cmp.Diff([]string{
		"update (commit) ConfigMap/" + space + "/free",
		"hold (not ours) ConfigMap/" + space + "/helms",
	}, actions(p)); diff != "" {
		t.Errorf("What nobody owns is taken up even where it is equal already; what Helm owns is held.\nsteps (-want +got):\n%s", diff)
	}
	if _, err := c.Apply(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hold (not ours) ConfigMap/" + space + "/helms"}, actions(planned(t, c, commit))); diff != "" {
		t.Errorf("What was taken up is ours.\nsteps (-want +got):\n%s", diff)
	}
	if free := w.mustGet(t, configMaps, space, "free"); !plan.Ours(free, w.sync) {
		t.Errorf("want our marks, got %v %v", free.GetLabels(), free.GetAnnotations())
	}
	if helms := w.mustGet(t, configMaps, space, "helms"); plan.Ours(helms, w.sync) ||
		slices.ContainsFunc(helms.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == plan.Manager }) {
		t.Errorf("want no trace of us, got %v", helms.GetManagedFields())
	}
}

func (w *world) mustGet(t *testing.T, gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u, err := w.at(gvr, namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}
