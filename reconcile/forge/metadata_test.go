package forge

import (
	"strings"
	"testing"
)

// If Headgate sent a request to a metadata service, an error could contain that service's response, and with it credentials.
func TestMetadataServiceIsNoForge(t *testing.T) {
	pulls, err := Account{Repository: Repository{Kind: KindGitea, Base: "https://169.254.169.254", Owner: "a", Name: "b"}, Token: Token("token-of-the-forge")}.Pulls()
	if err == nil {
		_, err = pulls.Pull(t.Context(), 1)
	}
	if err == nil || !strings.Contains(err.Error(), "refusing to connect to") {
		t.Errorf("Pull(...) = %v", err)
	}
}
