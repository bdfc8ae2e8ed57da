package schema

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestRefusals(t *testing.T) {
	const version = "{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}, subresources: {status: %s}}"
	cases := map[string]struct {
		reason                    string
		status, spec, refusedWith string
	}{
		"WebhookWithoutPort": {
			"The API server sets the port to 443.", "{}",
			"conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: b}}}}", "",
		},
		"BadPort": {
			"Another port is judged.", "{}",
			"conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: b, port: -1}}}}", "port is not valid",
		},
		"FieldBelowStatus": {"Server-side apply leaves it out.", "{any: thing}", "", ""},
		"UnknownField":     {"Server-side apply refuses it.", "{}", "scop: Cluster", "spec.scop: unknown field"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("metadata: {name: as.example.org, namespace: default}\nspec:\n  group: example.org\n  scope: Namespaced\n  names: {kind: A, plural: as}\n  versions: ["+version+"]\n  %s\n", tc.status, tc.spec)
			crd := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &crd.Object); err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(Refusals(t.Context(), crd))
			if tc.refusedWith == "" && got != "[]" || !strings.Contains(got, tc.refusedWith) {
				t.Errorf("%s\nRefusals(...) = %s, want %q", tc.reason, got, tc.refusedWith)
			}
		})
	}
}
