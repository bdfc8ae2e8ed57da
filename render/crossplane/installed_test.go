package crossplane

import (
	"strings"
	"testing"
)

// The test covers Crossplane's names for revisions, which fixtures/beside confirms for the newest version.
func TestInstalledIs(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	for name, tc := range map[string]struct {
		revision string
		digest   string
		want     bool
	}{
		"ByDigest":     {"provider-sea-abababababab", digest, true},
		"ByGeneration": {"provider-sea-d1e212fb9ee6", digest, true},
		"Another":      {"provider-sea-cdcdcdcdcdcd", digest, false},
		"None":         {"", digest, false},
		"NoDigest":     {"provider-sea-abababababab", "v1", false},
		"Empty":        {"provider-sea-", "", false},
	} {
		if got := (Installed{Revision: tc.revision}).Is(tc.digest); got != tc.want {
			t.Errorf("%s: want %t, got %t", name, tc.want, got)
		}
	}
}

func TestInstalledBy(t *testing.T) {
	long := strings.Repeat("a", 60)
	for revision, names := range map[string]map[string]bool{
		"provider-sea-d1e212fb9ee6":               {"provider-sea": true, "provider": false, "provider-sea-d1": false, "": false},
		"provider-sea-v2-d1e212fb9ee6":            {"provider-sea.v2": true, "provider-sea-v2": true},
		strings.Repeat("a", 50) + "-d1e212fb9ee6": {long: true, long[:49]: false},
		"": {"provider-sea": false, "": false},
	} {
		for name, want := range names {
			if got := (Installed{Revision: revision}).By(name); got != want {
				t.Errorf("%q by %q: want %t, got %t", revision, name, want, got)
			}
		}
	}
}
