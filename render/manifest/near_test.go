package manifest_test

import (
	"testing"

	"headgate.dev/headgate/render/manifest"
)

// A wrong suggestion is worse than none.
func TestMeant(t *testing.T) {
	ids := []string{"ConfigMap/team/settings", "ConfigMap/team/users", "Secret/team/users", "CustomResourceDefinition.apiextensions.k8s.io/buckets.example.org"}
	for text, want := range map[string]string{
		"ConfigMap/team/setings":           "ConfigMap/team/settings",
		"configmap/team/settings":          "ConfigMap/team/settings",
		"settings":                         "ConfigMap/team/settings",
		"ConfigMap/apps/settings":          "ConfigMap/team/settings",
		"users":                            "",
		"Deployment/other/web":             "",
		"crd/buckets.example.org":          "CustomResourceDefinition.apiextensions.k8s.io/buckets.example.org",
		"":                                 "",
		"/":                                "",
		"ConfigMap/team/settings-of-other": "",
	} {
		if got := manifest.Meant(text, ids); got != want {
			t.Errorf("Meant(%q) = %q, want %q", text, got, want)
		}
	}
}
