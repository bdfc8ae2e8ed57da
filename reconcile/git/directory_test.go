package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestDirectory(t *testing.T) {
	root := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(errors.Join(
		os.MkdirAll(filepath.Join(root, "a", "b"), 0o700),
		os.MkdirAll(filepath.Join(root, ".git"), 0o700),
		os.WriteFile(filepath.Join(root, ".git", "HEAD"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(root, "a", "b", "c.yaml"), []byte("c"), 0o600),
		os.WriteFile(filepath.Join(root, "a", ".git"), []byte("gitdir: x"), 0o600),
		os.WriteFile(filepath.Join(root, "x.yaml"), []byte("x"), 0o600),
		os.WriteFile(outside, []byte("secret"), 0o600),
	))
	in, err := Directory{Root: root, Path: "a"}.Fetch(t.Context(), "")
	must(err)
	if diff := cmp.Diff([]string{"", "a"}, []string{in.Revision, in.Path}); diff != "" {
		t.Errorf("Revision, Path (-want +got):\n%s", diff)
	}
	if err := fstest.TestFS(in.Files, "a/b/c.yaml", "x.yaml"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"a/b/c.yaml": "c", "x.yaml": "x"}, everything(t, in.Files)); diff != "" {
		t.Errorf("without .git (-want +got):\n%s", diff)
	}
	if _, tells := in.Files.(hasher); tells {
		t.Error("a file on disk may change between its hash and its content: what it tells must not be remembered")
	}

	must(errors.Join(
		os.Symlink(outside, filepath.Join(root, "out")),
		os.Symlink("x.yaml", filepath.Join(root, "in")),
		os.Symlink("a", filepath.Join(root, "dir")),
		os.Symlink("loop", filepath.Join(root, "loop")),
		os.Symlink(".git/HEAD", filepath.Join(root, "head")),
		syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600),
	))
	cases := map[string]struct {
		reason string
		path   string
		want   string
	}{
		"Outside":   {reason: "A link must not lead out of the directory.", path: "out", want: "not followed"},
		"Inside":    {reason: "Links inside a commit are not followed either.", path: "in", want: "not followed"},
		"Directory": {reason: "Links to directories are not followed.", path: "dir", want: "not followed"},
		"Below":     {reason: "A link in the middle of a path is not followed.", path: "dir/b/c.yaml", want: "not exist"},
		"Loop":      {reason: "Following a cycle of links would never end.", path: "loop", want: "not followed"},
		"Git":       {reason: "Git's own files are hidden.", path: ".git/HEAD", want: "not exist"},
		"GitLink":   {reason: "Links to Git's own files are not followed.", path: "head", want: "not followed"},
		"GitFile":   {reason: "In a submodule, .git is a file.", path: "a/.git", want: "not exist"},
		"Pipe":      {reason: "Opening a pipe would block forever.", path: "pipe", want: "special file"},
		"Up":        {reason: "A path must stay inside the directory.", path: "../x", want: "invalid"},
		"Missing":   {reason: "A missing file is reported as missing.", path: "nope", want: "no such file"},
		"Folder":    {reason: "A directory cannot be read as a file.", path: "a", want: "directory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := fs.ReadFile(in.Files, tc.path); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant error %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestDirectoryErrors(t *testing.T) {
	root := t.TempDir()
	if err := errors.Join(
		os.MkdirAll(filepath.Join(root, "prod"), 0o700),
		os.WriteFile(filepath.Join(root, "f"), nil, 0o600),
		os.Symlink("prod", filepath.Join(root, "link")),
	); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		dir    Directory
		ref    string
		want   string
	}{
		"Missing":  {reason: "The root may not exist.", dir: Directory{Root: filepath.Join(root, "nope")}, want: "no such file"},
		"File":     {reason: "The root may be a file.", dir: Directory{Root: filepath.Join(root, "f")}, want: "not a directory"},
		"Path":     {reason: "The path may not exist.", dir: Directory{Root: root, Path: "prdo"}, want: "has: prod"},
		"PathLink": {reason: "The path may be a link.", dir: Directory{Root: root, Path: "link"}, want: "symbolic link"},
		"Up":       {reason: "The path may lead out of the root.", dir: Directory{Root: root, Path: ".."}, want: "not inside"},
		"Ref":      {reason: "A directory on disk has no revisions.", dir: Directory{Root: root}, ref: "main", want: "no branches"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := tc.dir.Fetch(t.Context(), tc.ref)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant error %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
