package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
)

// few is the number of packs at which a clone counts as full in these tests.
const few = 12

// growing is a branch that gains commits, each of which is fetched.
type growing struct {
	*fixture
	server *server
	tip    plumbing.Hash
	pushed int
}

func (b *growing) grow(t *testing.T, r *Repository, commits int) {
	t.Helper()
	for range commits {
		var parents []plumbing.Hash
		if b.pushed > 0 {
			parents = append(parents, b.tip)
		}
		b.pushed++
		b.tip = b.push("main", map[string]string{"n": fmt.Sprint(b.pushed)}, parents...)
		in, err := r.Fetch(t.Context(), "main")
		if err != nil || in.Revision != b.tip.String() {
			t.Fatalf("commit %d: want %s, got %s, %v", b.pushed, b.tip, in.Revision, err)
		}
		if diff := cmp.Diff(map[string]string{"n": fmt.Sprint(b.pushed)}, everything(t, in.Files)); diff != "" {
			t.Fatalf("commit %d (-want +got):\n%s", b.pushed, diff)
		}
	}
}

func packsOf(t *testing.T, r *Repository) int {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(r.Cache, "*", "objects", "pack", "*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	return len(packs)
}

// left returns the files in a cache besides the clone and its lock.
func left(t *testing.T, r *Repository) []string {
	t.Helper()
	list, err := os.ReadDir(r.Cache)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range list {
		if name := f.Name(); strings.HasSuffix(name, ".new") || strings.HasSuffix(name, ".full") || strings.HasSuffix(name, ".old") {
			names = append(names, name)
		}
	}
	return names
}

// Every fetch adds a pack. After some fetches Headgate replaces the clone. If the whole history exceeds a limit, or the server
// disconnects, the loop must continue, because the existing clone is still usable.
func TestFullClone(t *testing.T) {
	f := newFixture(t)
	s := serve(f)
	b := &growing{fixture: f, server: s}
	r := &Repository{URL: s.url(), Cache: t.TempDir(), Limits: Limits{Objects: 30, packs: few}}
	b.grow(t, r, few+5)
	if got := packsOf(t, r); got != few+5 {
		t.Errorf("The whole history exceeds a limit: want all %d packs kept, got %d", few+5, got)
	}
	if got := left(t, r); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
	// Another process, which opens the existing clone, also continues.
	r = &Repository{URL: s.url(), Cache: r.Cache, Limits: Limits{Objects: 30, packs: few}}
	s.requests()
	b.grow(t, r, 1)
	if diff := cmp.Diff([]string{"list", "pack"}, s.requests()); diff != "" {
		t.Errorf("A clone anew is not tried at every fetch (-want +got):\n%s", diff)
	}

	// With a higher limit, the next attempt succeeds while others read.
	r = &Repository{URL: s.url(), Cache: r.Cache, Limits: Limits{packs: few}}
	in, err := r.Fetch(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	was := fmt.Sprint(b.pushed)
	b.grow(t, r, few-5)
	if got := packsOf(t, r); got != 1 {
		t.Errorf("want one pack after the clone was made anew, got %d", got)
	}
	if diff := cmp.Diff(map[string]string{"n": was}, everything(t, in.Files)); diff != "" {
		t.Errorf("A commit that was fetched before (-want +got):\n%s", diff)
	}
	if got := left(t, r); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
	b.grow(t, r, 2)
}

// The replacement of a clone survives a kill between any two steps.
func TestFullCloneKilled(t *testing.T) {
	f := newFixture(t)
	s := serve(f)
	b := &growing{fixture: f, server: s}
	cache := t.TempDir()
	// The limits prevent another fetch of the whole history.
	open := func() *Repository {
		return &Repository{URL: s.url(), Cache: cache, Limits: Limits{Objects: 30, packs: few}}
	}
	b.grow(t, open(), few+2)
	locks, err := filepath.Glob(filepath.Join(cache, "*.lock"))
	if err != nil || len(locks) != 1 {
		t.Fatal(locks, err)
	}
	dir := strings.TrimSuffix(locks[0], ".lock")
	f.must(os.MkdirAll(filepath.Join(dir+".new", "objects", "pack"), 0o700))
	b.grow(t, open(), 1)
	f.must(os.Rename(dir, dir+".full"))
	b.grow(t, open(), 1)
	f.must(os.MkdirAll(filepath.Join(dir+".full", "objects", "pack"), 0o700)) // the clone was replaced, and the old one is not yet removed
	b.grow(t, open(), few)
	if got := left(t, open()); len(got) > 0 && cmp.Diff([]string{filepath.Base(dir) + ".full"}, got) != "" {
		t.Errorf("left behind: %v", got)
	}
}

// If the server disconnects while the clone is replaced, the newest commit is still available.
func TestFullCloneBrokenOff(t *testing.T) {
	f := newFixture(t)
	s := serve(f)
	b := &growing{fixture: f, server: s}
	r := &Repository{URL: s.url(), Cache: t.TempDir(), Limits: Limits{packs: few}}
	b.grow(t, r, few)
	s.requests()
	s.mangle = func(p []byte) []byte {
		if s.sent[len(s.sent)-1] > 3 { // objects
			return p[:len(p)/2]
		}
		return p
	}
	b.grow(t, r, 2)
	if diff := cmp.Diff([]string{"list", "list", "pack", "pack", "list", "pack"}, s.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := packsOf(t, r); got != few+2 {
		t.Errorf("want %d packs, got %d", few+2, got)
	}
}
