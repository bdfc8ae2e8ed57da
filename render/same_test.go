package render_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"pgregory.net/rapid"
)

// A gitTree has files as a tree of Git has them: with hashes, and with symbolic links that are not followed.
type gitTree struct{ files fstest.MapFS }

func (t gitTree) Stat(name string) (fs.FileInfo, error) { return t.files.Lstat(name) }

func (t gitTree) plain(name string) error {
	info, err := t.files.Lstat(name)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = errors.New("is " + info.Mode().Type().String())
	}
	return err
}

func (t gitTree) Open(name string) (fs.File, error) {
	if err := t.plain(name); err != nil {
		return nil, err
	}
	return t.files.Open(name)
}

func (t gitTree) Hash(name string) (string, error) {
	if err := t.plain(name); err != nil {
		return "", err
	}
	if t.files[name] == nil {
		return "", errors.New("is a directory")
	}
	return fmt.Sprintf("%x", sha256.Sum256(t.files[name].Data)), nil
}

// read renders a commit below a path. It returns everything that is visible of the result, and what was read.
func read(t *testing.T, files fstest.MapFS, at string, how render.Options) (string, render.Reads) {
	t.Helper()
	in := render.Recording(render.Input{Revision: "one", Files: gitTree{maps.Clone(files)}, Path: at})
	want, err := render.Render(in, how)
	result := fmt.Sprintln(err)
	if err == nil {
		result += string(dump(t, want))
	}
	for _, d := range want.Definitions {
		result += made1(d.CRD()) + made1(d.MRD())
	}
	result += fmt.Sprint(want.Named, want.Approvals, want.Directories, want.Omitted, want.Programs, want.Repeated, want.Owner)
	for _, o := range want.Schemas {
		result += made1(o, nil)
	}
	return result, in.Read()
}

// same reports whether a commit is known to render to the same.
func same(was render.Reads, files fstest.MapFS, at string) (string, bool) {
	return was.Same(render.Recording(render.Input{Revision: "two", Files: gitTree{files}, Path: at}))
}

// TestSame edits a commit repeatedly. If a commit is known to render to the same as the one before, it does.
func TestSame(t *testing.T) {
	unchanged, changed := 0, 0
	var names []string
	for name := range pieces {
		names = append(names, name, path.Join("clusters/a", name), path.Join("clusters/b", name))
	}
	names = append(names, render.ApprovalsFile, "clusters/.headgateignore", "crossplane.yaml", "clusters/kustomization.yaml", "clusters/a/dir/object.json", "README.md", "clusters/a/go/main.go")
	slices.Sort(names)
	other := []string{"# nothing\n", "*.json\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n", "resources: [a, ../kus]\n", "apiVersion: headgate.dev/v1alpha1\nkind: Approvals\nmetadata: {name: a}\napprovals: []\n"}
	textsOf := func(name string) []string {
		for of, texts := range pieces {
			if name == of || strings.HasSuffix(name, "/"+of) {
				return texts
			}
		}
		return other
	}
	rapid.Check(t, func(r *rapid.T) {
		files := fstest.MapFS{}
		maps.Copy(files, fixtures.Below("clusters/a", firstPieces()))
		maps.Copy(files, fixtures.Below("clusters/b", firstPieces()))
		at := rapid.SampledFrom([]string{"", "clusters", "clusters/a", "clusters/a/kus", "clusters/a/pkg/crds", "clusters/a/dir", "clusters/a/mrd.yaml"}).Draw(r, "path")
		how := render.Options{
			Owner:   rapid.SampledFrom([]render.Owner{render.OwnerHeadgate, render.OwnerCrossplane, render.OwnerAuto}).Draw(r, "owner"),
			Limits:  rapid.SampledFrom([]manifest.Limits{{}, {}, {Documents: 5}}).Draw(r, "limits"),
			Schemas: rapid.SampledFrom([][]string{nil, nil, {"clusters/b/pkg"}}).Draw(r, "schemas"),
		}
		if rapid.Bool().Draw(r, "memo") {
			how.Memo = new(memo.Memory)
		}
		before, reads := read(t, files, at, how)
		for range rapid.IntRange(1, 10).Draw(r, "commits") {
			for range rapid.IntRange(1, 2).Draw(r, "edits") {
				name := rapid.SampledFrom(names).Draw(r, "file")
				text := rapid.SampledFrom(textsOf(name)).Draw(r, "text")
				edit(files, name, text, rapid.IntRange(0, 9).Draw(r, "edit"))
			}
			why, known := same(reads, maps.Clone(files), at)
			after, next := read(t, files, at, how)
			if known && before != after {
				r.Fatalf("the commits were known to render to the same:\n%s\n---\n%s", before, after)
			}
			if known {
				unchanged++
			} else if changed++; why == "" {
				r.Fatal("it is not said what changed")
			}
			before, reads = after, next
		}
	})
	if unchanged == 0 || changed == 0 {
		t.Errorf("%d commits changed nothing, and %d something: both must occur", unchanged, changed)
	}
}

// edit changes a file of a commit. It deletes what is in the way.
func edit(files fstest.MapFS, name, text string, how int) {
	for other := range files {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			delete(files, other)
		}
	}
	switch how {
	case 0:
		delete(files, name)
	case 1:
		files[name] = &fstest.MapFile{Data: []byte("object.json"), Mode: fs.ModeSymlink | 0o444}
	case 2: // a submodule
		files[name] = &fstest.MapFile{Mode: fs.ModeIrregular | 0o444}
	case 3: // a directory of that name
		delete(files, name)
		files[name+"/a.yaml"] = &fstest.MapFile{Data: []byte(text)}
	default:
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
}

func TestWhatChanges(t *testing.T) {
	const path = "clusters/a"
	base := func() fstest.MapFS {
		return fstest.MapFS{
			"clusters/a/a.yaml":               file(configOf("a")),
			"clusters/a/k/kustomization.yaml": file("resources: [../../../base]\n"),
			"base/kustomization.yaml":         file("resources: [b.yaml]\n"),
			"base/b.yaml":                     file(configOf("b")),
			"base/unused.yaml":                file(configOf("c")),
			"clusters/b/a.yaml":               file(configOf("d")),
			"README.md":                       file("# hello\n"),
		}
	}
	for name, tc := range map[string]struct {
		reason string
		edit   func(fstest.MapFS)
		want   string // what changes; "" for nothing
	}{
		"Beside":        {reason: "Another directory is not read.", edit: func(f fstest.MapFS) { f["clusters/b/a.yaml"] = file("{") }},
		"BesideAdded":   {reason: "A new directory beside the path is not read.", edit: func(f fstest.MapFS) { f["clusters/c/a.yaml"] = file("{") }},
		"UnusedOfABase": {reason: "A base contains only what its kustomization names.", edit: func(f fstest.MapFS) { f["base/unused.yaml"] = file("{") }},
		"Inside":        {reason: "A file of the path is read.", edit: func(f fstest.MapFS) { f["clusters/a/a.yaml"] = file(configOf("e")) }, want: "clusters/a/a.yaml"},
		"Base":          {reason: "A base outside of the path is read.", edit: func(f fstest.MapFS) { f["base/b.yaml"] = file(configOf("e")) }, want: "base/b.yaml"},
		"Added":         {reason: "A new file changes its directory.", edit: func(f fstest.MapFS) { f["clusters/a/z.yaml"] = file(configOf("e")) }, want: "clusters/a"},
		"IgnoreAbove":   {reason: "A file that did not exist was looked for.", edit: func(f fstest.MapFS) { f["clusters/.headgateignore"] = file("a\n") }, want: "clusters/.headgateignore"},
		"PackageAbove":  {reason: "The path becomes a part of a package.", edit: func(f fstest.MapFS) { f["crossplane.yaml"] = file(pieces["pkg/crossplane.yaml"][0]) }, want: "crossplane.yaml"},
		"Approvals":     {reason: "Approvals stand at the root, whatever the path is.", edit: func(f fstest.MapFS) { f[render.ApprovalsFile] = file("{}") }, want: render.ApprovalsFile},
		"LinkAbove": {reason: "A path below a link is not followed.", edit: func(f fstest.MapFS) {
			delete(f, "clusters/a/a.yaml")
			delete(f, "clusters/a/k/kustomization.yaml")
			f["clusters/a"] = &fstest.MapFile{Mode: fs.ModeSymlink}
		}, want: "clusters/a"},
		"Deleted": {reason: "A file is gone.", edit: func(f fstest.MapFS) { delete(f, "clusters/a/a.yaml") }, want: "clusters/a"},
		"Mode":    {reason: "What is a file becomes a directory.", edit: func(f fstest.MapFS) { delete(f, "clusters/a/a.yaml"); f["clusters/a/a.yaml/b"] = file("") }, want: "clusters/a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, reads := read(t, base(), path, render.Options{})
			files := base()
			tc.edit(files)
			if got, known := same(reads, files, path); got != tc.want || known != (tc.want == "") {
				t.Errorf("%s\nchanged: %q, known to be the same: %t; want %q", tc.reason, got, known, tc.want)
			}
		})
	}
}

func TestWhatElseChanges(t *testing.T) {
	files := fstest.MapFS{"a.yaml": file(configOf("a"))}
	image := packages.Image{Request: packages.Request{Source: "example.org/p"}, Version: "v1", Digest: "sha256:1"}
	base := func() render.Input {
		return render.Recording(render.Input{
			Revision: "one", Files: gitTree{files}, Source: render.SourceID{Repository: "example.org/r", Ref: "main", Commit: "one"},
			Packages: []packages.Image{image}, Installed: []crossplane.Installed{{Source: "a", Version: "v1"}}, Images: []packages.LiveConfig{{Name: "i"}},
		})
	}
	was := base()
	if _, err := render.Render(was, render.Options{}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		edit func(*render.Input)
		want string
	}{
		"Nothing":     {edit: func(*render.Input) {}},
		"Commit":      {edit: func(in *render.Input) { in.Revision, in.Source.Commit = "two", "two" }},
		"Path":        {edit: func(in *render.Input) { in.Path = "b" }, want: "path"},
		"Branch":      {edit: func(in *render.Input) { in.Source.Branch = "b" }, want: "source"},
		"Tag":         {edit: func(in *render.Input) { in.Packages[0].Digest = "sha256:2" }, want: "packages"},
		"Unreadable":  {edit: func(in *render.Input) { in.Packages[0].Err = errors.New("boom") }, want: "packages"},
		"NoPackages":  {edit: func(in *render.Input) { in.Packages = nil }, want: "packages"},
		"Installed":   {edit: func(in *render.Input) { in.Installed[0].Version = "v2" }, want: "installed packages"},
		"ImageConfig": {edit: func(in *render.Input) { in.Images[0].Ours = true }, want: "ImageConfigs of the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			in := base()
			tc.edit(&in)
			if got, known := was.Read().Same(in); got != tc.want || known != (tc.want == "") {
				t.Errorf("changed: %q, known to be the same: %t; want %q", got, known, tc.want)
			}
		})
	}
	if _, known := (render.Reads{}).Same(base()); known {
		t.Error("nothing is known of a commit that was not recorded")
	}
}

func configOf(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}
