package git

import (
	"os"
	"path/filepath"
	"testing"

	gogit "github.com/go-git/go-git/v5"
)

// go-git does not open a repository in which git sparse-checkout has set an extension, although nothing that Headgate reads depends on it.
// If this fails with a newer version of the library, openLocal may be needless (ADR 86).
func TestForeignOpen(t *testing.T) {
	f := fixtureAt(t, t.TempDir())
	first := f.push("main", map[string]string{"a.yaml": "1"})
	f.must(os.WriteFile(filepath.Join(f.dir, "config"), []byte("[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tworktreeConfig = true\n"), 0o600))
	if _, err := gogit.PlainOpen(f.dir); err == nil {
		t.Error("go-git opens it")
	}
	if got, err := (&Repository{URL: f.dir}).Resolve(t.Context(), "main"); err != nil || got != first.String() {
		t.Errorf("Headgate resolves main to %s, %v; want %s", got, err, first)
	}
}
