package git

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/revlist"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// A fixture is a bare repository that a test writes object by object.
type fixture struct {
	testing.TB
	dir   string
	store *filesystem.Storage
	clock time.Time
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	return fixtureAt(tb, tb.TempDir())
}

func fixtureAt(tb testing.TB, dir string) *fixture {
	tb.Helper()
	f := &fixture{TB: tb, dir: dir, clock: time.Unix(1_800_000_000, 0)}
	f.store = filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRUDefault())
	f.must(f.store.Init())
	f.must(os.WriteFile(filepath.Join(dir, "config"), []byte("[core]\n\tbare = true\n"), 0o600))
	f.link("HEAD", "refs/heads/main")
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) object(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	f.Helper()
	o := &plumbing.MemoryObject{}
	o.SetType(kind)
	_, err := o.Write(data)
	f.must(err)
	h, err := f.store.SetEncodedObject(o)
	f.must(err)
	return h
}

func (f *fixture) blob(text string) plumbing.Hash {
	f.Helper()
	return f.object(plumbing.BlobObject, []byte(text))
}

// An item is an entry of a tree, valid or not.
type item struct {
	mode, name string
	hash       plumbing.Hash
}

func (f *fixture) tree(items ...item) plumbing.Hash {
	f.Helper()
	var b bytes.Buffer
	for _, i := range items {
		fmt.Fprintf(&b, "%s %s\x00%s", i.mode, i.name, i.hash[:])
	}
	return f.object(plumbing.TreeObject, b.Bytes())
}

// files writes a tree with files.
func (f *fixture) files(files map[string]string) plumbing.Hash {
	f.Helper()
	var items []item
	below := map[string]map[string]string{}
	for path, text := range files {
		dir, rest, ok := strings.Cut(path, "/")
		if !ok {
			items = append(items, item{"100644", path, f.blob(text)})
			continue
		}
		if below[dir] == nil {
			below[dir] = map[string]string{}
		}
		below[dir][rest] = text
	}
	for dir, files := range below {
		items = append(items, item{"40000", dir, f.files(files)})
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	return f.tree(items...)
}

func (f *fixture) commit(tree plumbing.Hash, parents ...plumbing.Hash) plumbing.Hash {
	f.Helper()
	f.clock = f.clock.Add(time.Minute)
	who := object.Signature{Name: "A", Email: "a@example.org", When: f.clock}
	o := &plumbing.MemoryObject{}
	f.must((&object.Commit{Author: who, Committer: who, Message: "m", TreeHash: tree, ParentHashes: parents}).Encode(o))
	h, err := f.store.SetEncodedObject(o)
	f.must(err)
	return h
}

// push commits files to a branch.
func (f *fixture) push(branch string, files map[string]string, parents ...plumbing.Hash) plumbing.Hash {
	f.Helper()
	h := f.commit(f.files(files), parents...)
	f.ref("refs/heads/"+branch, h)
	return h
}

func (f *fixture) tag(name string, to plumbing.Hash, kind plumbing.ObjectType) plumbing.Hash {
	f.Helper()
	o := &plumbing.MemoryObject{}
	f.must((&object.Tag{Name: name, Tagger: object.Signature{Name: "A", When: f.clock}, Message: "m", TargetType: kind, Target: to}).Encode(o))
	h, err := f.store.SetEncodedObject(o)
	f.must(err)
	f.ref("refs/tags/"+name, h)
	return h
}

func (f *fixture) ref(name string, h plumbing.Hash) {
	f.Helper()
	f.must(f.store.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(name), h)))
}

func (f *fixture) link(name, to string) {
	f.Helper()
	f.must(f.store.SetReference(plumbing.NewSymbolicReference(plumbing.ReferenceName(name), plumbing.ReferenceName(to))))
}

// repack moves all objects into one pack, with deltas.
func (f *fixture) repack(byRef bool) {
	f.Helper()
	var all []plumbing.Hash
	f.must(f.store.ForEachObjectHash(func(h plumbing.Hash) error { all = append(all, h); return nil }))
	slices.SortFunc(all, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	w, err := f.store.PackfileWriter()
	f.must(err)
	_, err = packfile.NewEncoder(w, f.store, byRef).Encode(all, 10)
	f.must(err)
	f.must(w.Close())
	for _, h := range all {
		f.must(f.store.DeleteLooseObject(h))
	}
}

// A server serves a fixture over HTTP like git http-backend.
type server struct {
	*httptest.Server
	fixture *fixture

	mu     sync.Mutex
	seen   []string              // "list" and "pack"
	sent   []int                 // number of objects, by pack
	byID   bool                  // serves commits that no ref names
	acks   capability.Capability // multi_ack or multi_ack_detailed, which clients must support; "" is neither
	user   string
	token  string
	window uint                                              // the objects that a delta of an object is tried with
	before func(w http.ResponseWriter, r *http.Request) bool // true: handled
	mangle func(pack []byte) []byte
}

func serve(f *fixture) *server {
	s := &server{fixture: f, window: 10}
	s.Server = httptest.NewServer(s)
	f.Cleanup(s.Close)
	return s
}

func (s *server) url() string { return s.URL + "/team/repo.git" }

// requests returns the requests since the previous call.
func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil && s.before(w, r) {
		return
	}
	if user, token, _ := r.BasicAuth(); token != s.token || user != s.user && s.user != "" {
		http.Error(w, "bad credentials for "+user+": "+token, http.StatusUnauthorized)
		return
	}
	switch r.URL.Path {
	case "/team/repo.git/info/refs":
		s.seen = append(s.seen, "list")
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		s.list(w)
	case "/team/repo.git/git-upload-pack":
		s.seen = append(s.seen, "pack")
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		s.pack(w, r.Body)
	default:
		http.NotFound(w, r)
	}
}

func (s *server) list(w io.Writer) {
	f := s.fixture
	ar := packp.NewAdvRefs()
	ar.Prefix = [][]byte{[]byte("# service=git-upload-pack"), pktline.Flush}
	caps := []capability.Capability{capability.OFSDelta, capability.Sideband64k, capability.NoProgress}
	if s.byID {
		caps = append(caps, capability.AllowReachableSHA1InWant)
	}
	if s.acks != "" {
		caps = append(caps, s.acks, capability.ThinPack)
	}
	for _, c := range caps {
		f.must(ar.Capabilities.Set(c))
	}
	iter, err := f.store.IterReferences()
	f.must(err)
	f.must(iter.ForEach(func(ref *plumbing.Reference) error {
		if ref.Name() == plumbing.HEAD {
			if to, err := storer.ResolveReference(f.store, plumbing.HEAD); err == nil {
				h := to.Hash()
				ar.Head = &h
			}
		}
		if ref.Type() == plumbing.HashReference {
			if tag, err := object.GetTag(f.store, ref.Hash()); err == nil {
				ar.Peeled[ref.Name().String()] = tag.Target
			}
		}
		return ar.AddReference(ref)
	}))
	f.must(ar.Encode(w))
}

func (s *server) pack(w http.ResponseWriter, body io.Reader) {
	f := s.fixture
	req := packp.NewUploadPackRequest()
	f.must(req.Decode(body))
	if s.acks != "" && !req.Capabilities.Supports(s.acks) {
		http.Error(w, "TF401041: Clients must support multi-ack", http.StatusBadRequest)
		return
	}
	var have []plumbing.Hash
	for lines := pktline.NewScanner(body); lines.Scan(); {
		id, ok := strings.CutPrefix(strings.TrimSpace(string(lines.Bytes())), "have ")
		if h := plumbing.NewHash(id); ok && f.store.HasEncodedObject(h) == nil {
			have = append(have, h)
		}
	}
	known, err := revlist.Objects(f.store, have, nil)
	f.must(err)
	send, err := revlist.Objects(f.store, req.Wants, known)
	if err != nil {
		fmt.Fprint(w, "0024ERR upload-pack: not our ref.....")
		return
	}
	slices.SortFunc(send, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	s.sent = append(s.sent, len(send))
	var b bytes.Buffer
	_, err = packfile.NewEncoder(&b, f.store, !req.Capabilities.Supports(capability.OFSDelta)).Encode(send, s.window)
	f.must(err)
	pack := b.Bytes()
	if s.mangle != nil {
		pack = s.mangle(pack)
	}
	e := pktline.NewEncoder(w)
	if s.acks != "" {
		for _, h := range have {
			_ = e.Encodef("ACK %s %s\n", h, map[capability.Capability]string{capability.MultiACK: "continue", capability.MultiACKDetailed: "common"}[s.acks])
		}
	}
	if len(have) > 0 {
		_ = e.Encodef("ACK %s\n", have[0]) // an error means that the client has disconnected
	} else {
		_ = e.EncodeString("NAK\n")
	}
	mux := sideband.NewMuxer(sideband.Sideband64k, w)
	for part := range slices.Chunk(pack, 32<<10) { // go-git fails on larger chunks
		_, _ = mux.Write(part)
	}
	_ = e.Flush()
}

// texts returns files with small differences, so that Git packs them as deltas.
func texts(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("crds/%03d.yaml", i)] = strings.Repeat(fmt.Sprintf("some line that is the same in all of them\n%d\n", i/2), 50) + fmt.Sprint(i)
	}
	return files
}

func with(files map[string]string, path, text string) map[string]string {
	files = maps.Clone(files)
	files[path] = text
	return files
}
