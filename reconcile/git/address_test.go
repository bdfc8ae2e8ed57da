package git

import (
	"strings"
	"testing"
)

// This address serves a machine's credentials, and a Sync could name it.
func TestMetadataServiceIsNoRepository(t *testing.T) {
	for _, url := range []string{"http://169.254.169.254/latest/meta-data", "http://[fd00:ec2::254]/a/b", "http://metadata.google.internal/a/b"} {
		r := &Repository{URL: url}
		if _, err := r.Resolve(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), "refusing to connect to") {
			t.Errorf("%s: %v", url, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
