package cluster_test

import (
	"context"
	"encoding/base64"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/certificate"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/plan"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

var webhooks = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}

const (
	tool     = "controller-gen.kubebuilder.io/version"
	anyOther = `{"metadata":{"annotations":{"` + tool + `":"edited"}}}`
)

// withWebhook adds a conversion webhook to a CRD.
func withWebhook(crd *unstructured.Unstructured, client map[string]any) *unstructured.Unstructured {
	client["service"] = map[string]any{"name": "webhook", "namespace": "provider"}
	crd.Object["spec"].(map[string]any)["conversion"] = map[string]any{
		"strategy": "Webhook",
		"webhook":  map[string]any{"clientConfig": client, "conversionReviewVersions": []any{"v1"}},
	}
	return annotated(crd, "cert-manager.io/inject-ca-from", "provider/webhook")
}

func annotated(u *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	u.SetAnnotations(annotations)
	return u
}

// Changes that an API server, a CA injector or another controller makes to applied objects are not drift, and they do not hide a
// real edit.
//
//test:long
func TestNoise(t *testing.T) {
	t.Parallel()
	ca, _ := certificate.New("ca.example.org")
	someCA := base64.StdEncoding.EncodeToString(ca)
	inject := `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"` + someCA + `"}}}}}`
	merge := func(body string, subresources ...string) func(context.Context, *world, schema.GroupVersionResource, string) error {
		return func(ctx context.Context, w *world, gvr schema.GroupVersionResource, name string) error {
			_, err := w.live.Resource(gvr).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "cainjector"}, subresources...)
			return err
		}
	}
	none := func(context.Context, *world, schema.GroupVersionResource, string) error { return nil }
	cases := map[string]struct {
		reason string
		object func(crd *unstructured.Unstructured) *unstructured.Unstructured // the object in the commit
		noise  func(context.Context, *world, schema.GroupVersionResource, string) error
	}{
		"Defaults": {
			reason: "The API server sets singular, listKind, a conversion, and the port of a webhook.",
			object: func(crd *unstructured.Unstructured) *unstructured.Unstructured {
				return withWebhook(crd, map[string]any{"caBundle": someCA})
			},
			noise: none,
		},
		"Generated": {
			reason: "Generators write values that the API server drops or normalizes.",
			object: func(crd *unstructured.Unstructured) *unstructured.Unstructured {
				crd.Object["metadata"].(map[string]any)["creationTimestamp"] = nil
				crd.Object["status"] = map[string]any{
					"acceptedNames": map[string]any{"kind": "", "plural": ""}, "conditions": []any{}, "storedVersions": []any{},
				}
				spec := crd.Object["spec"].(map[string]any)
				spec["preserveUnknownFields"] = false
				version := spec["versions"].([]any)[0].(map[string]any)
				version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"] = map[string]any{
					"spec": map[string]any{"type": "number", "maximum": 10.0, "default": 1.0},
				}
				return crd
			},
			noise: none,
		},
		"Status": {
			reason: "The API server writes the status of a CRD.",
			noise: func(ctx context.Context, w *world, gvr schema.GroupVersionResource, name string) error {
				return retry.RetryOnConflict(retry.DefaultRetry, func() error {
					u, err := w.live.Resource(gvr).Get(ctx, name, metav1.GetOptions{})
					if err != nil {
						return err
					}
					status := u.Object["status"].(map[string]any)
					status["conditions"] = append(status["conditions"].([]any), map[string]any{
						"type": time.Now().String(), "status": "True", "reason": "A", "message": "b", "lastTransitionTime": "2026-01-01T00:00:00Z",
					})
					_, err = w.live.Resource(gvr).UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: "somebody"})
					return err
				})
			},
		},
		"StoredVersions": {
			reason: "The API server records every version that was ever stored.",
			noise:  merge(`{"status":{"storedVersions":["v1"]}}`, "status"),
		},
		"Injected": {
			reason: "cert-manager injects a CA that the manifest does not contain.",
			object: func(crd *unstructured.Unstructured) *unstructured.Unstructured {
				return withWebhook(crd, map[string]any{})
			},
			noise: merge(inject),
		},
		"InjectedOverPlaceholder": {
			reason: "cert-manager also replaces a placeholder CA.",
			object: func(crd *unstructured.Unstructured) *unstructured.Unstructured {
				return withWebhook(crd, map[string]any{"caBundle": "Cg=="})
			},
			noise: merge(inject),
		},
		"InjectedIntoAdmission": {
			reason: "cert-manager also injects CAs into a webhook configuration, whose list a controller may write.",
			object: func(crd *unstructured.Unstructured) *unstructured.Unstructured {
				hook := func(name string) any {
					return map[string]any{
						"name": name, "sideEffects": "None", "failurePolicy": "Ignore", "admissionReviewVersions": []any{"v1"},
						"clientConfig": map[string]any{"caBundle": "Cg==", "service": map[string]any{"name": "a", "namespace": "b"}},
						"rules":        []any{map[string]any{"apiGroups": []any{"none.example.org"}, "apiVersions": []any{"*"}, "operations": []any{"*"}, "resources": []any{"*"}}},
					}
				}
				u := thing("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", crd.GetName(),
					map[string]any{"webhooks": []any{hook("a.example.org"), hook("b.example.org")}})
				return annotated(u, "cert-manager.io/inject-ca-from", "provider/webhook")
			},
			noise: func(ctx context.Context, w *world, gvr schema.GroupVersionResource, name string) error {
				u, err := w.live.Resource(gvr).Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				for _, hook := range u.Object["webhooks"].([]any) {
					hook.(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = someCA
				}
				_, err = w.live.Resource(gvr).Update(ctx, u, metav1.UpdateOptions{FieldManager: "cainjector"})
				return err
			},
		},
		"Others": {
			reason: "Other controllers add their own labels, annotations, finalizers and short names.",
			noise: merge(`{"metadata":{"labels":{"app":"a"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"},"finalizers":["example.org/wait"]},` +
				`"spec":{"names":{"shortNames":["b"]}}}`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			u := w.crd("Bucket", "Namespaced")
			if tc.object != nil {
				u = tc.object(u)
			}
			annotated(u, tool, "v0.19.0")
			gvr := crds
			if u.GetKind() != "CustomResourceDefinition" {
				gvr = webhooks
			}
			t.Cleanup(func() { // of a finalizer
				if err := edit(context.Background(), w.live.Resource(gvr), u.GetName(), `{"metadata":{"finalizers":null}}`); err != nil {
					t.Error(err)
				}
			})
			c, commit := w.cluster(t, cluster.Options{}), want(t, u)
			applied(t, c, commit)
			if err := tc.noise(t.Context(), w, gvr, u.GetName()); err != nil {
				t.Fatal(err)
			}
			p := applied(t, c, commit)
			if diff := cmp.Diff([]string(nil), actions(p)); diff != "" {
				t.Errorf("%s\nsteps (-want +got):\n%s\n%v", tc.reason, diff, p.Steps[0].Changes())
			}
			w.requests.Reset()
			if applied(t, c, commit); w.requests.Counts()["DRY-RUN PATCH"] > 0 || w.requests.Writes() > 0 {
				t.Errorf("%s\nIt is looked at once: %v", tc.reason, w.requests.Log())
			}

			if err := tc.noise(t.Context(), w, gvr, u.GetName()); err != nil {
				t.Fatal(err)
			}
			w.patch(t, w.live.Resource(gvr), u.GetName(), anyOther)
			var changes []diff.Change
			for _, s := range planned(t, c, commit).Steps {
				if s.Cause == plan.Drift {
					changes = append(changes, s.Changes()...)
				}
			}
			found := []diff.Change{{Path: "metadata.annotations." + tool, From: `"edited"`, To: `"v0.19.0"`, By: "somebody"}}
			if diff := cmp.Diff(found, changes); diff != "" {
				t.Errorf("%s\nA real edit beside it is found, and nothing else.\nchanges (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
