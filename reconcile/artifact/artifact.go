// Package artifact reads the artifacts of Flux: archives that its source-controller made of a repository or an image. It trusts neither the
// server nor the archive: only what has the digest is unpacked, within limits.
package artifact

import (
	"archive/zip"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/disk"
	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/reconcile/scratch"
	"headgate.dev/headgate/render"
)

// An Artifact is what the status of a source of Flux names.
type Artifact struct {
	URL      string
	Digest   string // such as sha256:…
	Revision string // such as main@sha1:…, or the digest of an image
	Origin   string // for an image: the revision of the repository that it was made of, if the image names it
}

// revisions match the commit in a revision of Flux: main@sha1:…, main/…, or the commit alone.
var revisions = regexp.MustCompile(`^(?:.*[@/])?(?:sha1:)?([0-9a-f]{40})$`)

// Commit returns the commit that an artifact names, or, without one, its revision.
func (a Artifact) Commit() string {
	for _, revision := range []string{a.Origin, a.Revision} {
		if found := revisions.FindStringSubmatch(revision); found != nil {
			return found[1]
		}
	}
	return a.Revision
}

// Archives are a Source of the newest artifact of one object of Flux.
type Archives struct {
	Name   string // of the object, as the identity of the source
	Path   string // the directory with the manifests; "" is the root
	Read   func(context.Context) (Artifact, error)
	Limits Limits
	Time   time.Duration // how long a download may take
	Cache  string        // the directory for files; "" is a temporary one
	Budget *disk.Budget  // of a directory around it, which may remove the files; nil bounds nothing

	mu   sync.Mutex
	dir  scratch.Dir
	kept string // the file with the files of last
	last Artifact
	in   render.Input // of last
}

// Limits bound an artifact. The zero value selects the defaults.
type Limits struct {
	Archive int64 // bytes of the archive; default 512 MiB
	Total   int64 // bytes of all files; default 1 GiB
	Entries int   // files and directories; default 200,000
}

func (l Limits) orDefault() Limits {
	return Limits{cmp.Or(l.Archive, 512<<20), cmp.Or(l.Total, 1<<30), cmp.Or(l.Entries, 200_000)}
}

// Tip returns the commit of the newest artifact.
func (s *Archives) Tip(ctx context.Context, _ string) (string, error) {
	a, err := s.Read(ctx)
	return a.Commit(), err
}

// Fetch returns the files of the newest artifact. An artifact has no other refs, so ref is "".
func (s *Archives) Fetch(ctx context.Context, _ string) (render.Input, error) {
	a, err := s.Read(ctx)
	if err != nil {
		return render.Input{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in.Files != nil && s.last == a && s.isKept() {
		return s.in, nil
	}
	files, err := s.fetch(ctx, a)
	if _, isOurs := errors.AsType[*fs.PathError](err); isOurs {
		err = fmt.Errorf("cannot be stored: %w", err)
	}
	if err != nil {
		return render.Input{}, fmt.Errorf("%s: the artifact %w", s.Name, err)
	}
	dir := path.Clean(cmp.Or(s.Path, "."))
	if info, err := fs.Stat(files, dir); err != nil || !info.IsDir() {
		return render.Input{}, fmt.Errorf("%s: the artifact has no directory %q", s.Name, s.Path)
	}
	id := render.SourceID{Repository: s.Name, Commit: a.Commit()}
	if dir != "." {
		id.Path = dir
	}
	s.last, s.in = a, render.Input{Revision: a.Commit(), Files: files, Path: dir, Source: id}
	return s.in, nil
}

// isKept reports whether the files are still on disk, and records that they are used.
func (s *Archives) isKept() bool {
	now := time.Now()
	return os.Chtimes(s.kept, now, now) == nil
}

// Close removes all files. It is called after the last use of what Fetch returned.
func (s *Archives) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.remove(), s.dir.Remove())
}

// remove removes the files. Those who read them read on.
func (s *Archives) remove() error {
	if err := os.Remove(s.kept); s.kept != "" && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.kept, s.in.Files = "", nil
	return nil
}

// A tree holds the files of an artifact.
type tree struct{ fs.FS }

// create creates a file that the budget knows as one that can be removed, also if this process is killed. A finalizer closes it.
func (s *Archives) create() (*os.File, error) {
	if s.Cache == "" && s.dir.Path == "" {
		dir, err := scratch.New("artifacts")
		if err != nil {
			return nil, err
		}
		s.dir = dir
	}
	var name [sha256.Size]byte
	_, _ = rand.Read(name[:]) // it never fails
	dir := filepath.Join(cmp.Or(s.Cache, s.dir.Path), "sha256", hex.EncodeToString(name[:1]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(dir, hex.EncodeToString(name[:])), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// fetch downloads and unpacks an artifact.
func (s *Archives) fetch(ctx context.Context, a Artifact) (fs.FS, error) {
	archive, err := s.create()
	if err != nil {
		return nil, err
	}
	defer os.Remove(archive.Name())
	defer archive.Close()
	file, err := s.create()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Time, 10*time.Minute))
	defer cancel()
	share, ctx := s.Budget.Begin(ctx, file.Name())
	defer share.End()
	limits := s.Limits.orDefault()
	if err = download(ctx, a, share.To(archive), limits.Archive); err == nil {
		_, err = archive.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = unpack(archive, share.To(file), limits)
	}
	var files *zip.Reader
	if err == nil {
		files, err = opened(file)
	}
	if err != nil {
		return nil, errors.Join(share.Explain(err), file.Close(), os.Remove(file.Name()))
	}
	err = s.remove()
	s.kept = file.Name()
	return &tree{files}, err
}

// opened returns the files in an archive that unpack has written.
func opened(file *os.File) (*zip.Reader, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return zip.NewReader(file, info.Size())
}

// download writes an archive to a file, and returns an error unless it has the digest.
func download(ctx context.Context, a Artifact, to io.Writer, most int64) error {
	sum, want, err := hashOf(a.Digest)
	if err != nil {
		return err
	}
	at, err := url.Parse(a.URL)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || at.User != nil {
		return errors.New("its URL is no http(s) URL without credentials")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return network.Foreign(err)
	}
	client := http.Client{Transport: network.Quiet(network.Default, nil), CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if req.URL.Host != at.Host || req.URL.Scheme != at.Scheme {
			return network.Errorf("it redirects to another server")
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot be read: %w", network.Foreign(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot be read: the server answers %d; the source-controller may be about to replace it", resp.StatusCode)
	}
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(resp.Body, most+1))
	full, isFull := errors.AsType[disk.FullError](err)
	file, isOurs := errors.AsType[*fs.PathError](err)
	switch {
	case isFull:
		return full
	case isOurs:
		return file
	case err != nil:
		return fmt.Errorf("cannot be read: %w", network.Foreign(err))
	case n > most:
		return fmt.Errorf("has more than %d bytes", most)
	case hex.EncodeToString(sum.Sum(nil)) != want:
		return fmt.Errorf("does not have the digest %s that its status names, and is not used", a.Digest)
	}
	return nil
}

// hashOf returns the hash function of a digest, and the expected value.
func hashOf(digest string) (hash.Hash, string, error) {
	kind, value, _ := strings.Cut(digest, ":")
	sum := map[string]func() hash.Hash{"sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}[kind]
	if sum == nil || value == "" {
		return nil, "", errors.New("its status names no digest of sha256, sha384 or sha512")
	}
	return sum(), value, nil
}
