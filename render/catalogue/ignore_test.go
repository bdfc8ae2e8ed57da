package catalogue_test

import (
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/render/catalogue"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A walk reads exactly the files that Git would not ignore with the same patterns in its own ignore files.
func TestIgnoreAsGit(t *testing.T) {
	files := []string{
		"a.yaml", "b.yaml", "ab.yaml", "a b.yaml", "#a.yaml", "!a.yaml", "a[b].yaml",
		"x/a.yaml", "x/b.yaml", "x/y/a.yaml", "x/y/z/a.yaml", "x/y/z/b.yaml", "y/x/a.yaml", "y/a.yaml", "z.yaml/a.yaml",
	}
	patterns := []string{
		"a.yaml", "/a.yaml", "*.yaml", "?.yaml", "[ab].yaml", "[!a].yaml", "[^a]*.yaml", "x", "x/", "/x", "/x/", "x/y",
		"/x/y/", "x/*", "x/**", "**/x", "**/x/", "x/**/a.yaml", "x/**/z/a.yaml", "**/a.yaml", "**/y/**", "*", "/*", "y/**/a.yaml",
		"#a.yaml", `\#a.yaml`, `\!a.yaml`, `a\ b.yaml`, "a b.yaml", "a b.yaml  ", `a\[b\].yaml`, "z.yaml/", "*/a.yaml", "x/*/a.yaml", "***.yaml", "x**", "",
	}
	random := rand.New(rand.NewSource(1))
	some := func() []byte {
		var lines []string
		for range 1 + random.Intn(4) {
			line := patterns[random.Intn(len(patterns))]
			if random.Intn(3) == 0 && line != "" {
				line = "!" + line
			}
			lines = append(lines, line)
		}
		return []byte(strings.Join(lines, "\n") + "\n")
	}

	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	write := func(name string, content []byte) {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet")
	for i, name := range files {
		write(name, []byte(object("v1", "ConfigMap", fmt.Sprintf("file-%d", i))))
	}

	for range 150 {
		top, inside := some(), some()
		write(".headgateignore", top)
		write("x/.headgateignore", inside)

		want := strings.FieldsFunc(git("ls-files", "-z", "--others", "--exclude-per-directory=.headgateignore"), func(r rune) bool { return r == 0 })
		want = slices.DeleteFunc(want, func(name string) bool { return !strings.HasSuffix(name, ".yaml") })
		slices.Sort(want)
		c, err := read(os.DirFS(dir), "", catalogue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range c.Objects {
			got = append(got, o.Origin.Path)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf(".headgateignore:\n%s\nx/.headgateignore:\n%s\n(-want +got):\n%s", top, inside, diff)
		}
	}
}

func TestIgnoreFileIsALink(t *testing.T) {
	files := tree(map[string]string{"a/b.yaml": object("v1", "ConfigMap", "a"), "patterns": "*\n"})
	files["a/.headgateignore"] = files["patterns"]
	files["a/.headgateignore"].Mode = fs.ModeSymlink
	_, err := read(files, "", catalogue.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "a/.headgateignore: is not a regular file") {
		t.Errorf("links are not followed, and what this one leads to was meant to be left out: want an error, got %v", err)
	}
}

// Whatever the patterns are, each is accepted or refused, and every file is read or counted.
func FuzzIgnore(f *testing.F) {
	for _, seed := range []string{"", "*\n!a.yaml", "[", "a/**\n", "\\", "\x00", "!/\n", "**/", "[[:x:]]", "\uFEFFa.yaml\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, patterns string) {
		files := tree(map[string]string{
			".headgateignore": patterns,
			"a.yaml":          object("v1", "ConfigMap", "a"),
			"x/b.yaml":        object("v1", "ConfigMap", "b"),
			"x/y/c.yaml":      object("v1", "ConfigMap", "c"),
		})
		c, err := read(files, "", catalogue.Options{})
		if err != nil {
			return
		}
		if n := len(c.Objects) + c.Skipped[catalogue.Ignored]; n != 3 {
			t.Errorf("%q: %d objects and %v skipped, of 3", patterns, len(c.Objects), c.Skipped)
		}
	})
}
