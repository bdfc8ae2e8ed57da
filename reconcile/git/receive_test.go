package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"headgate.dev/headgate/fixtures/bombs"
)

// heads are the limits that package target sets for heads of pull requests, but smaller where a test would take too long.
var heads = Limits{Objects: 1 << 20, Unpacked: 128 << 20, Object: 16 << 20}

// A pack of kilobytes must not take gigabytes, because every author of a pull request can send one. Headgate refuses the claimed
// sizes before it unpacks anything, and a refusal leaves the clone unchanged.
//
//test:unraced
func TestFetchRefusesBombs(t *testing.T) {
	bombs.Bound(t, 2<<30)
	cases := map[string]struct {
		reason string
		write  func(p *bombs.Pack)
		bytes  int // maximum size of the pack
		want   string
		limits Limits
	}{
		"DeltasThatMultiply": {
			reason: "Three small deltas expand 64 KiB to 65 GB; a delta states the size of its result in its first bytes.",
			write:  func(p *bombs.Pack) { p.Doublings(100, 100, 100) },
			bytes:  20 << 10,
			want:   "one object has 655360000 bytes, and the limit is 16777216: remove the file from the history, or store it with Git LFS",
		},
		"OneBlobOfZeros": {
			reason: "Zeros are compressed a thousand to one, and the header states the size.",
			write:  func(p *bombs.Pack) { p.Claim(bombs.Blob, 6<<30, make([]byte, 1<<20)) },
			bytes:  20 << 10,
			want:   "one object has 6442450944 bytes",
		},
		"ManyBlobsOfZeros": {
			reason: "Each object is below the limit, but all of them together take hours.",
			write: func(p *bombs.Pack) {
				for range 20 {
					p.Zeros(8 << 20)
				}
			},
			bytes: 1 << 20,
			want:  "its objects have more than 134217728 bytes together",
		},
		"ManyDeltas": {
			reason: "Deltas are even smaller, and take as long.",
			write: func(p *bombs.Pack) {
				base := p.Zeros(1 << 20)
				for range 20 {
					p.Repeat(base, 8)
				}
			},
			bytes: 40 << 10,
			want:  "its objects have more than 134217728 bytes together",
		},
		"MoreObjectsThanItHas": {
			reason: "A reader would allocate memory for the claimed number of objects before it reads the first.",
			write:  func(p *bombs.Pack) { p.Object(bombs.Blob, nil) },
			bytes:  100,
			want:   "it has 2 objects, and the limit is 1",
			limits: Limits{Objects: 1},
		},
		"LongerThanItSays": {
			reason: "An object that is longer than its claimed size is not read to its end.",
			write:  func(p *bombs.Pack) { p.Claim(bombs.Blob, 10, make([]byte, 64<<20)) },
			bytes:  1 << 20,
			want:   "an object is not as long as it says",
		},
		"ShorterThanItSays": {
			reason: "A claimed size must not allocate memory.",
			write:  func(p *bombs.Pack) { p.Claim(bombs.Blob, 15<<20, []byte("short")) },
			bytes:  100,
			want:   "an object is not as long as it says",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var p bombs.Pack
			p.Object(bombs.Blob, []byte("x"))
			tc.write(&p)
			if p.Len() > tc.bytes {
				t.Fatalf("the bomb has %d bytes", p.Len())
			}
			f := newFixture(t)
			f.push("main", map[string]string{"a.yaml": "a"})
			s := serve(f)
			s.mangle = func([]byte) []byte { return p.Bytes() }
			limits := heads
			if tc.limits != (Limits{}) {
				limits = tc.limits
			}
			cache := t.TempDir()
			r := &Repository{URL: s.url(), Cache: cache, Limits: limits}
			before := allocated()
			_, err := r.Fetch(t.Context(), "main")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nFetch: %v\nwant: %s", tc.reason, err, tc.want)
			}
			if took := allocated() - before; took > 12<<20 {
				t.Errorf("%s\nFetch takes %d MiB", tc.reason, took>>20)
			}
			if left, _ := filepath.Glob(filepath.Join(r.Cache, "*", "objects", "pack", "*")); len(left) > 0 {
				t.Errorf("%s\nleft: %v", tc.reason, left)
			}
			s.mangle = nil
			r = &Repository{URL: s.url(), Cache: cache, Limits: heads}
			if _, err := r.Fetch(t.Context(), "main"); err != nil {
				t.Errorf("the refused pack must not hinder the next: %v", err)
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// A server that lists refs without end must not exhaust the memory. The error differs from that for a server with many branches.
func TestFetchRefusesTooManyRefs(t *testing.T) {
	f := newFixture(t)
	h := f.push("main", map[string]string{"a.yaml": "a"})
	for _, name := range []string{"one", "two", "three"} {
		f.ref("refs/heads/"+name, h)
	}
	s := serve(f)
	for want, limits := range map[string]Limits{
		"the server lists 4 refs, and the limit is 3; delete branches that are not needed": {Refs: 3},
		"the list of refs is too long; delete branches that are not needed":                {RefBytes: 200},
	} {
		r := &Repository{URL: s.url(), Cache: t.TempDir(), Limits: limits}
		if _, err := r.Fetch(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Fetch: %v, want %s", err, want)
		}
	}
	r := &Repository{URL: s.url(), Cache: t.TempDir(), Limits: Limits{Refs: 4}}
	if _, err := r.Fetch(t.Context(), "main"); err != nil {
		t.Error(err)
	}
}

// Deltas that are longer than their results are read one at a time. Reading a whole chain at once would take a multiple of the
// limit, by the length of the chain. The same holds while the pack is received.
//
//test:unraced,long
func TestLongDeltas(t *testing.T) {
	bombs.Bound(t, 2<<30)
	var p bombs.Pack
	base := p.Zeros(8 << 20)
	tree := p.Tree(bombs.File("a", base))
	commit := p.Commit(tree, "m")
	_ = commit
	o := base
	for i := range 30 {
		o = p.Pad(o, byte(i+1))
	}
	dir := t.TempDir()
	c := &clone{dir: dir, limits: Limits{Object: 16 << 20}.orDefault()}
	if err := os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	peak := watchHeap(t)
	if err := c.receive(t.Context(), bytes.NewReader(p.Bytes()), nil); err != nil {
		t.Fatal(err)
	}
	store, _, err := c.open()
	if err != nil {
		t.Fatal(err)
	}
	packs, err := store.open()[0].packs()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := packs[0].index.EntriesByOffset()
	if err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for {
		e, err := entries.Next()
		if err != nil {
			break
		}
		last = int64(e.Offset)
	}
	if v, err := packs[0].read(last, 16<<20); err != nil || len(v.data) != 8<<20 {
		t.Errorf("read: %d bytes, %v", len(v.data), err)
	}
	if got := peak(); got > 160<<20 {
		t.Errorf("30 deltas of 8 MiB take %d MiB", got>>20)
	}
}

// watchHeap returns a function that returns how much memory the heap has taken from the system since.
func watchHeap(tb testing.TB) func() uint64 {
	tb.Helper()
	percent := debug.SetGCPercent(100) // make sets another percentage for tests
	tb.Cleanup(func() { debug.SetGCPercent(percent) })
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	return func() uint64 {
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		return after.HeapSys - before.HeapSys + before.HeapInuse
	}
}

// Headgate must write the same index for a pack as go-git, so that git and go-git can read the clone. However invalid a pack is,
// receiving it must end, and the received objects must be those that go-git receives.
func FuzzReceive(f *testing.F) {
	for _, byID := range []bool{false, true} {
		repo := newFixture(f)
		repo.ref("refs/heads/main", repo.commit(repo.files(texts(12))))
		repo.repack(byID)
		packs, err := filepath.Glob(filepath.Join(repo.dir, "objects", "pack", "*.pack"))
		if err != nil || len(packs) != 1 {
			f.Fatalf("packs: %v, %v", packs, err)
		}
		whole, err := os.ReadFile(packs[0])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(whole)
		f.Add(append(bytes.Clone(whole), 0))
		f.Add(whole[:len(whole)-1])
		for _, at := range []int{5, 11, 12, 13, 14, len(whole) / 2, len(whole) - 30, len(whole) - 1} {
			broken := bytes.Clone(whole)
			broken[at] ^= 0x55
			f.Add(broken)
		}
	}
	var p bombs.Pack
	o := p.Object(bombs.Blob, []byte("some text"))
	p.Repeat(p.Repeat(o, 3), 2)
	p.Pad(p.Repeat(o, 5), 7)
	f.Add(p.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		// A corrected checksum lets the reader get past the first check.
		for _, data := range [][]byte{data, mended(data)} {
			dir := t.TempDir()
			c := &clone{dir: dir, limits: Limits{Objects: 1000, Unpacked: 8 << 20, Object: 1 << 20}.orDefault()}
			if err := os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700); err != nil {
				t.Fatal(err)
			}
			err := c.receive(context.Background(), bytes.NewReader(data), nil)
			if err != nil {
				if !errors.Is(err, errPack) && !errors.As(err, new(packError)) {
					t.Errorf("an error of another kind: %v", err)
				}
				continue
			}
			written, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.idx"))
			if err != nil || len(written) != 1 {
				t.Fatalf("indexes: %v, %v", written, err)
			}
			ours, err := os.ReadFile(written[0])
			if err != nil {
				t.Fatal(err)
			}
			theirs, ok := indexByGoGit(data)
			if ok && !bytes.Equal(ours, theirs) {
				t.Errorf("the index differs from that of go-git")
			}
		}
	})
}

func mended(data []byte) []byte {
	if len(data) < 32 {
		return data
	}
	var p bombs.Pack
	sum := p.Sum(data[:len(data)-20])
	return append(bytes.Clone(data[:len(data)-20]), sum[:]...)
}

// indexByGoGit returns go-git's index of a pack, if go-git can create one.
func indexByGoGit(data []byte) (index []byte, ok bool) {
	defer func() {
		if recover() != nil { // go-git panics on some invalid packs
			ok = false
		}
	}()
	files := memfs.New()
	if writeTo(files, data) != nil {
		return nil, false
	}
	file, err := files.Open("pack")
	if err != nil {
		return nil, false
	}
	w := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(file), w)
	if err != nil {
		return nil, false
	}
	if _, err := parser.Parse(); err != nil {
		return nil, false
	}
	made, err := w.Index()
	if err != nil {
		return nil, false
	}
	var b bytes.Buffer
	_, err = idxfile.NewEncoder(&b).Encode(made)
	return b.Bytes(), err == nil
}

// The deadline ends the transfer, even while the pack is unpacked.
func TestReceiveStops(t *testing.T) {
	var p bombs.Pack
	p.Object(bombs.Blob, []byte("x"))
	dir := t.TempDir()
	c := &clone{dir: dir, limits: Limits{}.orDefault()}
	if err := os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.receive(ctx, io.Reader(bytes.NewReader(p.Bytes())), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("receive: %v", err)
	}
}
