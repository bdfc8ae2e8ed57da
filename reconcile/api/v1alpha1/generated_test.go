package v1alpha1_test

import (
	"os"
	"path/filepath"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/golden"
)

// TestGenerated compares the CRD of a Sync and the methods of its types with what controller-gen makes of the types. With -update it
// writes both, and so does `make generate`, which also works while they do not compile.
func TestGenerated(t *testing.T) {
	dir := t.TempDir()
	fixtures.ControllerGen(t, ".", "paths=.", "object", "crd", "output:dir="+dir)
	for name, committed := range map[string]string{
		"headgate.dev_syncs.yaml":  "../../../examples/controller/crds/headgate.dev_syncs.yaml",
		"zz_generated.deepcopy.go": "zz_generated.deepcopy.go",
	} {
		made, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, committed, string(made))
	}
}
