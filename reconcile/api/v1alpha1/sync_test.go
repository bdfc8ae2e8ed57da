package v1alpha1

import "testing"

// An invalid host would never match an image, and the user would not learn why.
func TestIsRegistry(t *testing.T) {
	for text, want := range map[string]bool{
		"ghcr.io": true, "registry.example.org:5000": true, "localhost": true, "127.0.0.1:5000": true, "[::1]:5000": true,
		"": false, "*": false, "*.example.org": false, "https://ghcr.io": false, "ghcr.io/acme": false, "ghcr": false,
		"user:password@ghcr.io": false, "ghcr.io:": false, "ghcr.io.": false, "ghcr .io": false, "ghcr.io,quay.io": false,
	} {
		if got := IsRegistry(text); got != want {
			t.Errorf("IsRegistry(%q): want %t, got %t", text, want, got)
		}
	}
}
