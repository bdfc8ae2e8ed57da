package artifact

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/disk"
)

// An entry is one of an archive.
type entry struct {
	name, content string
	kind          byte
	link          string
}

// packed returns an archive.
func packed(tb testing.TB, entries ...entry) []byte {
	tb.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for _, e := range entries {
		kind := e.kind
		if kind == 0 {
			kind = tar.TypeReg
		}
		if err := archive.WriteHeader(&tar.Header{Name: e.name, Mode: 0o777, Size: int64(len(e.content)), Typeflag: kind, Linkname: e.link}); err != nil {
			tb.Fatal(err)
		}
		if _, err := archive.Write([]byte(e.content)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// serve serves archives, and returns the artifact of the last one that was given.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func digestOf(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

const commit = "0123456789abcdef0123456789abcdef01234567"

// Only an archive with the digest is unpacked. Whoever made it writes nothing outside of its directory, and not more than the limits.
func TestFetch(t *testing.T) {
	good := packed(t, entry{name: "a/", kind: tar.TypeDir}, entry{name: "./a/one.yaml", content: "one"}, entry{name: "two.yaml", content: "two"})
	outside := func(e entry) []byte { return packed(t, entry{name: "a/one.yaml", content: "one"}, e) }
	for name, tc := range map[string]struct {
		reason string
		data   []byte
		digest string // that of the data if left out
		limits Limits
		path   string
		want   string // in the error; "" if there is none
	}{
		"Good":      {reason: "Files and directories are read.", data: good},
		"Below":     {reason: "A Sync may apply one directory.", data: good, path: "a"},
		"NoPath":    {reason: "The directory must exist.", data: good, path: "b", want: "no directory"},
		"Digest":    {reason: "Another archive took its place.", data: good, digest: "sha256:" + strings.Repeat("0", 64), want: "does not have the digest"},
		"NoDigest":  {reason: "Without a digest, anyone on the way could replace it.", data: good, digest: "none", want: "names no digest"},
		"OtherHash": {reason: "A broken hash function proves nothing.", data: good, digest: "md5:abcd", want: "names no digest"},
		"NoArchive": {reason: "An image may hold anything.", data: []byte("hello"), want: "no tar.gz"},
		"Cut":       {reason: "An archive may be damaged.", data: good[:len(good)-20], want: "no valid archive"},
		"Up":        {reason: "A path may lead out of the directory.", data: outside(entry{name: "../../etc/passwd", content: "x"}), want: "outside"},
		"Absolute":  {reason: "So may an absolute one.", data: outside(entry{name: "/etc/passwd", content: "x"}), want: "outside"},
		"Symlink":   {reason: "A link leads elsewhere, also for a later file.", data: outside(entry{name: "b", kind: tar.TypeSymlink, link: "/etc"}), want: "neither a file"},
		"Hardlink":  {reason: "So does this one.", data: outside(entry{name: "b", kind: tar.TypeLink, link: "a/one.yaml"}), want: "neither a file"},
		"Device":    {reason: "A device is no file.", data: outside(entry{name: "b", kind: tar.TypeBlock}), want: "neither a file"},
		"Twice":     {reason: "What was checked first could be replaced.", data: outside(entry{name: "a/one.yaml", content: "x"}), want: "twice"},
		"FileAsDir": {reason: "A file is no directory.", data: outside(entry{name: "a/one.yaml/b", content: "x"}), want: "twice"},
		"Bomb":      {reason: "A small archive may have huge files.", data: packed(t, entry{name: "a", content: strings.Repeat("0", 1<<20)}), limits: Limits{Total: 1 << 16}, want: "more than 65536 bytes of files"},
		"Entries":   {reason: "Or very many.", data: good, limits: Limits{Entries: 2}, want: "more than 2 files"},
		"Large":     {reason: "Or be large itself.", data: good, limits: Limits{Archive: 10}, want: "more than 10 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(tc.data) })
			digest := tc.digest
			if digest == "" {
				digest = digestOf(tc.data)
			}
			s := &Archives{Name: "GitRepository/flux-system/platform", Path: tc.path, Limits: tc.limits, Read: func(context.Context) (Artifact, error) {
				return Artifact{URL: address + "/a.tar.gz", Digest: digest, Revision: "main@sha1:" + commit}, nil
			}}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(s.dir.Path); err == nil {
					t.Error("files stay")
				}
			}()
			in, err := s.Fetch(t.Context(), "")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s\n%v, want %q", tc.reason, err, tc.want)
			}
			if err != nil {
				if left, _ := filepath.Glob(filepath.Join(s.dir.Path, "sha256", "*", "*")); tc.path == "" && len(left) > 0 {
					t.Errorf("%s\nfiles stay: %v", tc.reason, left)
				}
				return
			}
			if in.Revision != commit || in.Source.Repository != s.Name || in.Source.Commit != commit {
				t.Errorf("the input is %+v", in)
			}
			if err := fstest.TestFS(in.Files, "a/one.yaml", "two.yaml"); err != nil {
				t.Error(err)
			}
			again, err := s.Fetch(t.Context(), "")
			if err != nil || again.Files != in.Files {
				t.Errorf("the same artifact is read again: %v", err)
			}
		})
	}
}

// The room for an artifact is bounded. A pass reads on after its files were removed, and the next one gets them again.
func TestBudget(t *testing.T) {
	data := packed(t, entry{name: "a/one.yaml", content: "one"})
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	cache := t.TempDir()
	archives := func(bytes int64) *Archives {
		return &Archives{Name: "GitRepository/a/b", Cache: filepath.Join(cache, "artifacts"), Budget: &disk.Budget{Dir: cache, Bytes: bytes}, Read: func(context.Context) (Artifact, error) {
			return Artifact{URL: address, Digest: digestOf(data), Revision: "main@sha1:" + commit}, nil
		}}
	}
	if _, err := archives(10).Fetch(t.Context(), ""); !errors.As(err, new(disk.FullError)) {
		t.Errorf("want no room, got %v", err)
	}
	s := archives(1 << 20)
	in, err := s.Fetch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.kept); err != nil {
		t.Fatal(err)
	}
	again, err := s.Fetch(t.Context(), "")
	if err != nil || again.Files == in.Files {
		t.Errorf("want the files again, got %v", err)
	}
	for _, files := range []fs.FS{in.Files, again.Files} {
		if got, err := fs.ReadFile(files, "a/one.yaml"); err != nil || string(got) != "one" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "artifacts", "sha256", "*", "*")); len(left) > 0 {
		t.Errorf("files stay: %v", left)
	}
}

// A full disk is not a fault of the archive.
func TestFullDisk(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "/cache/x", Err: syscall.ENOSPC}
	err := unpack(bytes.NewReader(packed(t, entry{name: "a", content: strings.Repeat("a", 1<<20)})), failing{full}, Limits{}.orDefault())
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("want a full disk, got %v", err)
	}
	cache := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(cache, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Archives{Name: "GitRepository/a/b", Cache: cache, Read: func(context.Context) (Artifact, error) { return Artifact{}, nil }}
	if _, err := s.Fetch(t.Context(), ""); err == nil || !strings.HasPrefix(err.Error(), "GitRepository/a/b: the artifact cannot be stored: mkdir ") {
		t.Errorf("want a file that cannot be written, got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// An artifact is only read from where its status says.
func TestFetchElsewhere(t *testing.T) {
	data := packed(t, entry{name: "a", content: "a"})
	other := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	for name, tc := range map[string]struct{ url, want string }{
		"Redirect": {serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusFound) }), "redirects"},
		"Missing":  {serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "hidden", http.StatusNotFound) }), "answers 404"},
		"File":     {"file:///etc/passwd", "no http(s) URL"},
		"Userinfo": {"http://user:hidden@example.org", "no http(s) URL"},
		"Metadata": {"http://169.254.169.254/latest", "cannot be read"},
	} {
		s := &Archives{Name: "GitRepository/a/b", Read: func(context.Context) (Artifact, error) {
			return Artifact{URL: tc.url, Digest: digestOf(data), Revision: "main@sha1:" + commit}, nil
		}}
		_, err := s.Fetch(t.Context(), "")
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Statuses belong to the commit that the artifact names.
func TestCommit(t *testing.T) {
	for name, tc := range map[string]struct {
		of   Artifact
		want string
	}{
		"Branch": {Artifact{Revision: "feature/x@sha1:" + commit}, commit},
		"Old":    {Artifact{Revision: "main/" + commit}, commit},
		"Bare":   {Artifact{Revision: "sha1:" + commit}, commit},
		"Image":  {Artifact{Revision: "latest@sha256:" + strings.Repeat("a", 64), Origin: "main@sha1:" + commit}, commit},
		"NoName": {Artifact{Revision: "latest@sha256:" + strings.Repeat("a", 64)}, "latest@sha256:" + strings.Repeat("a", 64)},
	} {
		if diff := cmp.Diff(tc.want, tc.of.Commit()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Whatever an archive holds, nothing is written outside of its directory, and not more than the limit.
func FuzzUnpack(f *testing.F) {
	f.Add(packed(f, entry{name: "a/one.yaml", content: "one"}))
	f.Add(packed(f, entry{name: "../a", content: "one"}))
	f.Add(packed(f, entry{name: "a", kind: tar.TypeSymlink, link: "/"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var to bytes.Buffer
		if unpack(bytes.NewReader(data), &to, Limits{Total: 1 << 16, Entries: 100}) != nil {
			return
		}
		files, err := zip.NewReader(bytes.NewReader(to.Bytes()), int64(to.Len()))
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil && !info.Mode().IsRegular() {
				t.Errorf("%s is a %s", name, info.Mode())
			}
			total += info.Size()
			return err
		})
		if err != nil || total > 1<<16 {
			t.Errorf("%d bytes, %v", total, err)
		}
	})
}
