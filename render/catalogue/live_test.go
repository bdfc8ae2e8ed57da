package catalogue

import (
	"strings"
	"testing"
)

// How Crossplane names revisions, as fixtures/beside proves of the newest.
func TestLiveIs(t *testing.T) {
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
		if got := (Live{Revision: tc.revision}).Is(tc.digest); got != tc.want {
			t.Errorf("%s: want %t, got %t", name, tc.want, got)
		}
	}
}
