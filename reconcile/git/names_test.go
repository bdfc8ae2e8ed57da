package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"

	"github.com/google/go-cmp/cmp"
)

// Repositories from Windows have names that are not UTF-8. Such a name does not stop a commit unless it names a manifest.
func TestNamesThatAreNotUTF8(t *testing.T) {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
	for name, tc := range map[string]struct {
		reason string
		ignore string
		path   []string // of the file
		want   catalogue.Skipped
		err    string
	}{
		"Document":         {reason: "The file is no manifest.", path: []string{"docs", "caf\xe9.md"}, want: catalogue.Skipped{catalogue.NotUTF8: 1}},
		"Manifest":         {reason: "Skipping a manifest would prune what it declared.", path: []string{"docs", "caf\xe9.yaml"}, err: `docs/caf\xe9.yaml: the name caf\xe9.yaml in directory docs is not UTF-8: rename it (git mv), or list it in .headgateignore`},
		"Directory":        {reason: "Nothing in the directory is a manifest.", path: []string{"d\xe9", "a", "b.md"}, want: catalogue.Skipped{catalogue.NotUTF8: 1}},
		"InDirectory":      {reason: "The path of the manifest is not UTF-8 either.", path: []string{"d\xe9", "a", "b.yaml"}, err: `d\xe9: the name d\xe9 in directory . is not UTF-8`},
		"IgnoredDirectory": {reason: "Nothing is read in an ignored directory.", ignore: "docs/\n", path: []string{"docs", "caf\xe9.yaml"}, want: catalogue.Skipped{catalogue.Ignored: 1}},
		"Ignored":          {reason: "A pattern can match the name.", ignore: "caf*.yaml\n", path: []string{"docs", "caf\xe9.yaml"}, want: catalogue.Skipped{catalogue.Ignored: 1}},
		"IgnoredBelow":     {reason: "A pattern can match below such a directory.", ignore: "*.yaml\n!ok.yaml\n", path: []string{"d\xe9", "b.yaml"}, want: catalogue.Skipped{catalogue.NotUTF8: 1}},
		"Hidden":           {reason: "A name that begins with a dot is not read, whatever follows.", path: []string{".caf\xe9.yaml"}, want: catalogue.Skipped{catalogue.Hidden: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			root := []item{{"100644", ".headgateignore", f.blob(tc.ignore)}, {"100644", "ok.yaml", f.blob(fmt.Sprintf(object, "ok"))}}
			h, mode := f.blob(fmt.Sprintf(object, "other")), "100644"
			for i := len(tc.path) - 1; i > 0; i-- {
				h, mode = f.tree(item{mode, tc.path[i], h}), "40000"
			}
			commit := fetch(t, f, f.tree(append(root, item{mode, tc.path[0], h})...))

			disk := t.TempDir()
			for file, text := range map[string]string{".headgateignore": tc.ignore, "ok.yaml": fmt.Sprintf(object, "ok"), filepath.Join(tc.path...): fmt.Sprintf(object, "other")} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(disk, file)), 0o700), os.WriteFile(filepath.Join(disk, file), []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			plain, err := Directory{Root: disk}.Fetch(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			for how, files := range map[string]fs.FS{"commit": commit.Files, "directory": plain.Files} {
				c, err := render.Catalogue(render.Input{Files: files}, render.Options{})
				if tc.err != "" {
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Errorf("%s\n%s: want error %q, got %v", tc.reason, how, tc.err, err)
					}
					continue
				}
				if err != nil || len(c.Objects) != 1 {
					t.Fatalf("%s\n%s: %d objects, %v", tc.reason, how, len(c.Objects), err)
				}
				for _, o := range c.Omitted {
					if _, err := o.Declares(); err != nil {
						t.Errorf("%s\n%s: %v", tc.reason, how, err)
					}
				}
				if diff := cmp.Diff(tc.want, c.Skipped); diff != "" {
					t.Errorf("%s\n%s: skipped (-want +got):\n%s", tc.reason, how, diff)
				}
			}
		})
	}
}
