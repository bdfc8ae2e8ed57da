package packages_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render/packages"
)

// Stored content counts only if it is the locked file of the locked image.
func TestContent(t *testing.T) {
	const name, digest = ".headgate/schemas/sea.txt", "sha256:0001"
	head := "# Written by headgate lock --schemas: a package without the schemas of inactive definitions.\n# acme/sea:v1\n# " + digest + "\n"
	file := func(text string, mode fs.FileMode) fstest.MapFS {
		return fstest.MapFS{name: {Data: []byte(text), Mode: mode}}
	}
	for title, tc := range map[string]struct {
		reason string
		files  fstest.MapFS
		hash   string // hash of this text instead of the file's
		err    string
	}{
		"Right":        {reason: "The file matches the lock.", files: file(head+"---\na: b\n", 0)},
		"Absent":       {reason: "A clone may lack the file.", files: fstest.MapFS{}, err: "cannot be read: file does not exist"},
		"Link":         {reason: "A link may lead anywhere.", files: file("/etc/passwd", fs.ModeSymlink), err: "it is not a regular file"},
		"Directory":    {reason: "A directory is not a regular file.", files: fstest.MapFS{name + "/a": {}}, err: "it is not a regular file"},
		"Large":        {reason: "A large file of a pull request must not exhaust the memory.", files: file(strings.Repeat("a", packages.MaxKept+1), 0), err: "is larger than 48 MiB"},
		"Cut":          {reason: "A write may be interrupted, or a merge may mix two files.", files: file(head, 0), hash: head + "---\na: b\n", err: "is not the file that headgate.lock.yaml records"},
		"OtherImage":   {reason: "The lock may be updated without the file, to another image.", files: file(strings.Replace(head, digest, "sha256:0002", 1), 0), err: "belongs to another image than " + digest},
		"OtherVersion": {reason: "The lock may be updated without the file, to another version.", files: file(strings.Replace(head, ":v1", ":v2", 1), 0), err: "belongs to another image than " + digest},
		"OtherSource":  {reason: "The file may belong to another package.", files: file(strings.Replace(head, "acme/sea", "acme/air", 1), 0), err: "belongs to another image than " + digest},
		"NoHead":       {reason: "The file may not be stored content at all.", files: file("a: b\n", 0), err: "belongs to another image than " + digest},
	} {
		t.Run(title, func(t *testing.T) {
			text := tc.hash
			if f := tc.files[name]; text == "" && f != nil {
				text = string(f.Data)
			}
			r := packages.Request{Source: "acme/sea", Version: "v1", Digest: digest, Keeps: packages.Keeps{File: name, Hash: packages.KeptHash([]byte(text))}}
			_, err := r.Content(tc.files)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nContent(...) returned %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
	for _, source := range []string{"", ".", "..", "a/../..", "a/" + strings.Repeat("ü", 300), "xpkg.example.org:5000/acme/Sea"} {
		if got := packages.KeptName(source); strings.ContainsAny(got, "/\\ ü") || len(got) > 80 || strings.HasPrefix(got, ".") {
			t.Errorf("The name of a file does not depend on what a source may hold: %q", got)
		}
	}
}
