//test:package raced
package manifest

import (
	"encoding/base64"
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDropPlaceholderCA(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	good := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	bundles := map[string]struct {
		reason, bundle string
		stays          bool
	}{
		"Newline":     {"controller-gen writes this value as a placeholder.", "Cg==", false},
		"NoBase64":    {"The API server refuses a bundle that is not base64.", "\n", false},
		"NoPEM":       {"The bundle contains no certificate.", "Zm9v", false},
		"Certificate": {"The bundle contains the certificate of the webhook.", good, true},
		"Empty":       {"An empty bundle selects the CAs of the API server.", "", true},
		"Variable":    {"Flux substitutes a variable in the rendered objects.", "${CA_BUNDLE}", true},
	}
	objects := map[string]func(client map[string]any) map[string]any{
		"apiextensions.k8s.io/v1 CustomResourceDefinition": func(client map[string]any) map[string]any {
			return map[string]any{"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": client}}}}
		},
		"apiextensions.crossplane.io/v1alpha1 ManagedResourceDefinition": func(client map[string]any) map[string]any {
			return map[string]any{"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": client}}}}
		},
		"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration": func(client map[string]any) map[string]any {
			return map[string]any{"webhooks": []any{"no webhook", map[string]any{"clientConfig": client}}}
		},
		"admissionregistration.k8s.io/v1 MutatingWebhookConfiguration": func(client map[string]any) map[string]any {
			return map[string]any{"webhooks": []any{map[string]any{"clientConfig": client}}}
		},
	}
	for of, object := range objects {
		for name, tc := range bundles {
			t.Run(of+"/"+name, func(t *testing.T) {
				client := map[string]any{"caBundle": tc.bundle}
				u := &unstructured.Unstructured{Object: object(client)}
				for i, c := range of {
					if c == ' ' {
						u.SetAPIVersion(of[:i])
						u.SetKind(of[i+1:])
					}
				}
				DropPlaceholderCA(u)
				if _, stays := client["caBundle"]; stays != tc.stays {
					t.Errorf("%s\n%q stays %t, want %t", tc.reason, tc.bundle, stays, tc.stays)
				}
			})
		}
	}
	for _, odd := range []map[string]any{{}, {"spec": "a"}, {"spec": map[string]any{"conversion": []any{}}}, {"webhooks": map[string]any{}}, {"webhooks": []any{map[string]any{"clientConfig": 1}}}} {
		for _, kind := range []string{"CustomResourceDefinition", "ValidatingWebhookConfiguration"} {
			u := &unstructured.Unstructured{Object: odd}
			u.SetAPIVersion(map[string]string{"CustomResourceDefinition": "apiextensions.k8s.io/v1", "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1"}[kind])
			u.SetKind(kind)
			DropPlaceholderCA(u) // must not panic
		}
	}
}
