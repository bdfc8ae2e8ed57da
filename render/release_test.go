package render_test

import (
	"testing"

	"headgate.dev/headgate/render"
)

func TestKubernetesMinor(t *testing.T) {
	for text, want := range map[string]int{"": 0, "1.34": 34, "v1.34.2": 34, "1.9": 9, "1.34.2+k3s1": 34, "v1.33.0-eks-1": 33} {
		if got, err := render.KubernetesMinor(text); got != want || err != nil {
			t.Errorf("KubernetesMinor(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"1", "2.1", "1.x", "1.1234", "latest", "1.30;", "1.0", "1.034", " 1.30"} {
		if got, err := render.KubernetesMinor(text); err == nil {
			t.Errorf("KubernetesMinor(%q) = %d without an error", text, got)
		}
	}
}
