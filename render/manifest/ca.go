package manifest

import (
	"crypto/x509"
	"encoding/base64"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// DropPlaceholderCA removes from u each CA bundle of a webhook that contains no certificate: a placeholder that a controller in the
// cluster replaces. An API server does not establish a CRD with a placeholder. Flux also removes it.
func DropPlaceholderCA(u *unstructured.Unstructured) {
	switch id := IDOf(u); {
	case strings.HasPrefix(id.Group, "apiextensions."): // CRDs, MRDs and XRDs have it in the same place
		client, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "conversion", "webhook", "clientConfig")
		dropPlaceholder(client)
	case id.IsWebhookConfiguration():
		webhooks, _ := u.Object["webhooks"].([]any)
		for _, w := range webhooks {
			if webhook, ok := w.(map[string]any); ok {
				dropPlaceholder(webhook["clientConfig"])
			}
		}
	}
}

func dropPlaceholder(client any) {
	fields, _ := client.(map[string]any)
	if text, ok := fields["caBundle"].(string); ok && isPlaceholder(text) {
		delete(fields, "caBundle")
	}
}

// isPlaceholder reports whether a CA bundle contains no certificate. It returns false for an empty bundle, which means the CAs of
// the API server, and for a variable, which the consumer of our output replaces.
func isPlaceholder(bundle string) bool {
	if bundle == "" || strings.Contains(bundle, "${") {
		return false
	}
	raw, err := base64.StdEncoding.DecodeString(bundle)
	return err != nil || !x509.NewCertPool().AppendCertsFromPEM(raw)
}
