package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/render/manifest"

	"github.com/fluxcd/pkg/ssa"
	ssaerrors "github.com/fluxcd/pkg/ssa/errors"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// These tests show what fluxcd/pkg/ssa and client-go do differently, where Headgate has its own code (ADR 86). If one fails with a newer
// version of the library, that code may be needless.

// send sends a JSON patch of managed fields, and returns the object.
func send(t *testing.T, at dynamic.ResourceInterface, name string, patch []ssa.JSONPatch) *unstructured.Unstructured {
	t.Helper()
	body, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	u, err := at.Patch(t.Context(), name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: "headgate"})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// fieldsByManager returns the managed fields of an object, without its metadata.
func fieldsByManager(u *unstructured.Unstructured) []string {
	var all []string
	for _, e := range u.GetManagedFields() {
		all = append(all, fmt.Sprintf("%s %s %s", e.Manager, e.Operation, e.FieldsV1))
	}
	return all
}

// PatchMigrateToVersion leaves two entries of one manager. The API server keeps the last one, so nobody manages the fields of the other
// one any more. TestVanishedVersion expects that the manager keeps both.
func TestForeignMigration(t *testing.T) {
	w := newWorld(t)
	if _, err := w.at(crds, "").Create(t.Context(), w.versioned("v1beta1", "v1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	at := w.resource("Bucket")
	until(t, func() bool {
		_, err := w.live.Resource(at).Create(t.Context(), w.bucketOf("v1", 1), metav1.CreateOptions{FieldManager: "creator"})
		return err == nil
	})
	for _, version := range []string{"v1beta1", "v1"} {
		at.Version = version
		by := fmt.Sprintf(`{"spec":{"by-%s":"x"}}`, version)
		if _, err := w.live.Resource(at).Patch(t.Context(), "a", types.MergePatchType, []byte(by), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
			t.Fatal(err)
		}
	}
	u, err := w.live.Resource(at).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := ssa.PatchMigrateToVersion(u, w.group+"/v1")
	if err != nil {
		t.Fatal(err)
	}
	got := fieldsByManager(send(t, w.live.Resource(at), "a", patch))
	if all := strings.Join(got, "\n"); len(got) != 2 || strings.Contains(all, `f:by-v1"`) == strings.Contains(all, `f:by-v1beta1"`) {
		t.Errorf("one of two fields keeps its manager, but the managed fields are\n%s", all)
	}
}

// PatchReplaceFieldsManagers takes every field of a manager, so the next apply removes what the commit does not set. TestMigration expects
// that such fields stay, and are reported.
func TestForeignAdoption(t *testing.T) {
	w := newWorld(t)
	if _, err := w.at(namespaces, "").Create(t.Context(), namespace(w.sync.Namespace), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	at := w.at(configMaps, w.sync.Namespace)
	live := configMap(w.sync.Namespace, "a", "1")
	live.Object["data"] = map[string]any{"key": "1", "other": "1"}
	live, err := at.Create(t.Context(), live, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"})
	if err != nil {
		t.Fatal(err)
	}
	from := []ssa.FieldManager{{Name: "kubectl-client-side-apply", ExactMatch: true, OperationType: metav1.ManagedFieldsOperationUpdate}}
	patch, err := ssa.PatchReplaceFieldsManagers(live, from, "headgate")
	if err != nil {
		t.Fatal(err)
	}
	send(t, at, "a", patch)
	after, err := at.Apply(t.Context(), "a", configMap(w.sync.Namespace, "a", "1"), metav1.ApplyOptions{FieldManager: "headgate"})
	if err != nil {
		t.Fatal(err)
	}
	if data, _, _ := unstructured.NestedStringMap(after.Object, "data"); data["other"] != "" {
		t.Errorf("the field stays: %v", data)
	}
}

// IsImmutableError is true for every conflict and every invalid object, so it cannot decide that an object has to be replaced.
func TestForeignImmutability(t *testing.T) {
	in := metav1.GroupVersionKind{Kind: "ConfigMap"}
	for name, err := range map[string]error{
		"another writer was faster": apierrors.NewConflict(configMaps.GroupResource(), "a", errors.New("the object has been modified")),
		"a misspelt value":          apierrors.NewInvalid(configMap("a", "a", "1").GroupVersionKind().GroupKind(), in.Kind, nil),
		"a sentence":                errors.New("the field is not an immutable field"),
	} {
		if !ssaerrors.IsImmutableError(err) {
			t.Errorf("%s is no immutable field", name)
		}
	}
}

// A stub answers requests of controller-runtime's client.
type stub struct {
	client.Client

	live   *unstructured.Unstructured
	failed error
}

func (s stub) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if u, ok := into.(*unstructured.Unstructured); ok && s.failed == nil {
		u.Object = s.live.DeepCopy().Object
	}
	return s.failed
}

// Patch answers that an apply changes the object to what was sent.
func (s stub) Patch(_ context.Context, sent client.Object, _ client.Patch, _ ...client.PatchOption) error {
	sent.SetResourceVersion("1")
	return nil
}

// WaitForTermination waits for an object that was made anew, and one error of the API server ends it. It has no context, so nothing can
// end it early. TestAPruneEndsWithItsObject expects the opposite.
func TestForeignTermination(t *testing.T) {
	anew := configMap("a", "a", "1")
	anew.SetUID("another")
	for name, s := range map[string]stub{
		"made anew": {live: anew},
		"busy":      {failed: apierrors.NewTooManyRequests("busy", 1)},
	} {
		was := configMap("a", "a", "1")
		was.SetUID("deleted")
		err := ssa.NewResourceManager(s, nil, ssa.Owner{}).WaitForTermination([]*unstructured.Unstructured{was}, ssa.WaitOptions{Interval: time.Millisecond, Timeout: 10 * time.Millisecond})
		if err == nil || !strings.Contains(err.Error(), "termination timeout") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The diffs of the library compare neither finalizers nor removed labels, name list items by position, and mask only the data of a Secret.
// TestCompare and TestMasked expect the opposite.
func TestForeignDiff(t *testing.T) {
	object := func(text string) *unstructured.Unstructured {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return &u
	}
	cases := map[string]struct {
		live, want string
		patch      string
	}{
		"Finalizer": {
			live:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [a.example.org/b]}}",
			want:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
			patch: `null`,
		},
		"LabelLeaves": {
			live:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: b}}}",
			want:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
			patch: `null`,
		},
		"ItemByPosition": {
			live:  "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{name: a, port: 1}, {name: b, port: 2}]}}",
			want:  "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{name: b, port: 2}, {name: a, port: 1}]}}",
			patch: `[{"value":"b","op":"replace","path":"/spec/ports/0/name"},{"value":2,"op":"replace","path":"/spec/ports/0/port"},{"value":"a","op":"replace","path":"/spec/ports/1/name"},{"value":1,"op":"replace","path":"/spec/ports/1/port"}]`,
		},
		"SecretInAnAnnotation": {
			live:  "{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: old}}}",
			want:  "{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2}}}",
			patch: `[{"value":"hunter2","op":"replace","path":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"}]`,
		},
	}
	for name, tc := range cases {
		found, err := jsondiff.Unstructured(t.Context(), stub{live: object(tc.live)}, object(tc.want), jsondiff.MaskSecrets(true))
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(found.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.patch, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The normalisation of a Secret agrees with Headgate's in its data. It drops fields that this version of the API does not have, so a typing
// error would vanish instead of being refused, and it adds an empty creation time.
func TestForeignNormalisation(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"a": "YQ=="}, "stringData": map[string]any{"b": "b"},
	}}
	ours := secret.DeepCopy()
	manifest.EncodeStringData(ours)
	if err := normalize.Unstructured(secret); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(secret.Object, "metadata", "creationTimestamp")
	if diff := cmp.Diff(ours.Object, secret.Object); diff != "" {
		t.Errorf("a Secret (-ours +theirs):\n%s", diff)
	}
	misspelt := configMap("a", "a", "1")
	misspelt.Object["dataa"] = map[string]any{"a": "b"}
	if err := normalize.Unstructured(misspelt); err != nil {
		t.Fatal(err)
	}
	if _, kept := misspelt.Object["dataa"]; kept {
		t.Error("the unknown field stays")
	}
	if _, added := misspelt.Object["metadata"].(map[string]any)["creationTimestamp"]; !added {
		t.Error("there is no empty creation time")
	}
}

// client-go sends the token to the target of every redirect. TestDiscreet expects that it stays with the API server.
func TestForeignRedirect(t *testing.T) {
	token := ""
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { token = r.Header.Get("Authorization") }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
	}))
	defer server.Close()
	c, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, BearerToken: "hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Resource(configMaps).Get(t.Context(), "a", metav1.GetOptions{})
	if token != "Bearer hunter2" {
		t.Errorf("the other host got %q", token)
	}
}
