package examples

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"
)

// The platform repository has no CRDs. Its packages come from a mirror in the test registry.
func TestRegistry(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	packages := fixtures.StartRegistry(t)
	packages.Push(t, "mirror/acme/storage", "v1.2.0", treeOf(t, "registry/configuration"), 0)
	for _, tag := range []string{"v0.3.0", "v0.4.0", "v0.4.1"} {
		packages.Push(t, "mirror/acme/provider-tidewater", tag, treeOf(t, "quickstart/repository/provider-tidewater"), 0)
	}
	platform := treeOf(t, "registry/platform")
	mirror := platform["mirror.yaml"]
	mirror.Data = []byte(strings.Replace(string(mirror.Data), "registry.example.org/", packages.Host+"/", 1))

	how := render.Options{Owner: render.OwnerCrossplane}
	in, err := (&registry.Resolver{Next: commit{platform}, How: how, Cache: t.TempDir()}).Fetch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	want, err := render.Render(in, how)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range want.Definitions {
		if d.Active {
			got = append(got, d.Name+" because of "+d.Reasons[0].Policy)
		}
	}
	for _, p := range want.Packages {
		got = append(got, p.Source+" "+p.Version)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{
		"instances.database.tidewater.m.example.org because of databases",
		"packages.example.org/acme/provider-tidewater v0.4.1",
		"packages.example.org/acme/storage v1.2.0",
		"users.database.tidewater.m.example.org because of databases",
		"volumes.storage.tidewater.m.example.org because of storage",
	}, got); diff != "" {
		t.Errorf("what README.md says (-want +got):\n%s", diff)
	}
	for _, f := range want.Findings {
		t.Errorf("An example has nothing to warn of: %v", f)
	}
}

type commit struct{ files fstest.MapFS }

func (c commit) Fetch(context.Context, string) (render.Input, error) {
	return render.Input{Files: c.files}, nil
}

func treeOf(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	tree := os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		files[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
