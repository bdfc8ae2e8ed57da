package git

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/disk"
)

// A tenant has a repository that does not compress.
type tenant struct {
	*Repository
	*server
	files map[string]string
}

func newTenant(t *testing.T, cache string, budget *disk.Budget, kilobytes int) *tenant {
	t.Helper()
	f := newFixture(t)
	files := map[string]string{}
	for i := 0; i < kilobytes; i += 16 {
		some := make([]byte, 16<<10)
		_, _ = rand.Read(some)
		files[fmt.Sprintf("d%d/f%d", i%3, i)] = string(some)
	}
	f.push("main", files)
	s := serve(f)
	s.window = 0 // deltas of random bytes take minutes with the race detector
	return &tenant{&Repository{URL: s.url(), Cache: cache, Budget: budget}, s, files}
}

// pass fetches and reads all files.
func (n *tenant) pass(ctx context.Context) error {
	in, err := n.Fetch(ctx, "main")
	if err != nil {
		return err
	}
	for name, want := range n.files {
		if got, err := fs.ReadFile(in.Files, name); err != nil || string(got) != want {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// bytesIn returns the size of all files in a directory. A file that is renamed meanwhile counts once.
func bytesIn(dir string) (bytes int64) {
	sizes := map[uint64]int64{}
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		if info, err := os.Lstat(path); err == nil && !info.IsDir() {
			sizes[info.Sys().(*syscall.Stat_t).Ino] = info.Size()
		}
		return nil
	})
	for _, size := range sizes {
		bytes += size
	}
	return bytes
}

// Ten tenants with a room for four repositories: all of them pass in turn, and together they never keep more.
func TestBudget(t *testing.T) {
	const kilobytes = 1 << 10
	cache := t.TempDir()
	var removed, most int64
	shared := &Shared{}
	budget := &disk.Budget{Dir: cache, Bytes: 4 * kilobytes << 10, Removed: func(dir string) {
		removed++
		most = max(most, bytesIn(cache)) // nothing grows meanwhile, so this is what is there at one time
		shared.Drop(dir)
	}}
	var tenants []*tenant
	for range 10 {
		n := newTenant(t, cache, budget, kilobytes)
		n.Shared = shared
		tenants = append(tenants, n)
	}
	var passing sync.WaitGroup
	for _, n := range tenants {
		passing.Go(func() {
			for passed := 0; passed < 3; {
				err := n.pass(t.Context())
				switch {
				case err == nil:
					passed++
				case !errors.As(err, new(disk.FullError)) && !errors.Is(err, errReplaced):
					t.Error(err)
					return
				}
			}
		})
	}
	passing.Wait()
	if most = max(most, bytesIn(cache)); most > budget.Bytes {
		t.Errorf("want at most %d bytes, got %d", budget.Bytes, most)
	}
	if removed < 6 {
		t.Errorf("want room for 4 of 10 clones, got %d removed", removed)
	}
}

// A repository that needs more than its share fails alone. From the second time on, nothing of others is removed for it.
func TestLargeRepositoryFailsAlone(t *testing.T) {
	cache := t.TempDir()
	budget := &disk.Budget{Dir: cache, Bytes: 4 << 20}
	small := []*tenant{newTenant(t, cache, budget, 800), newTenant(t, cache, budget, 800), newTenant(t, cache, budget, 800)}
	pass := func() {
		t.Helper()
		for _, n := range small {
			if err := n.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	pass()
	large := newTenant(t, cache, budget, 3<<10)
	err := large.pass(t.Context())
	want := "the cache has no room: it needs more than 2Mi, and may take half of --cache-size (4Mi): raise --cache-size if that is right"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("want %s, got %v", want, err)
	}
	pass()
	for _, n := range small {
		n.requests()
	}
	if err := large.pass(t.Context()); !errors.As(err, new(disk.FullError)) {
		t.Errorf("want no room again, got %v", err)
	}
	pass()
	for _, n := range small {
		if got := n.requests(); len(got) != 1 {
			t.Errorf("want a clone that stays, got %v", got)
		}
	}
	if got := bytesIn(cache); got > 3<<20 {
		t.Errorf("want only the small clones, got %d bytes", got)
	}
}

// The next process receives the repository as if a killed one had received nothing.
func TestKilledFetchTakesNoRoom(t *testing.T) {
	cache := t.TempDir()
	n := newTenant(t, cache, &disk.Budget{Dir: cache, Bytes: 4 << 20}, 1<<10)
	n.files = nil
	if err := n.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	packs, err := filepath.Glob(filepath.Join(cache, "*", "objects", "pack", "*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	if err := os.Rename(packs[0], filepath.Join(filepath.Dir(packs[0]), "tmp_pack_1")); err != nil {
		t.Fatal(err)
	}
	again := &Repository{URL: n.URL, Cache: cache, Budget: &disk.Budget{Dir: cache, Bytes: 4 << 20}}
	if _, err := again.Fetch(t.Context(), "main"); err != nil {
		t.Error(err)
	}
	if got := bytesIn(cache); got > 3<<19 {
		t.Errorf("want only the clone, got %d bytes", got)
	}
}

// A pass reads a commit to its end, although its clone is removed and made again meanwhile.
func TestReadWhileRemoved(t *testing.T) {
	n := newTenant(t, t.TempDir(), nil, 256)
	n.Shared = &Shared{}
	for range 20 {
		in, err := n.Fetch(t.Context(), "main")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if diff := cmp.Diff(n.files, everything(t, in.Files)); diff != "" {
					t.Error(diff)
				}
			})
		}
		all.Go(func() {
			locks, err := filepath.Glob(filepath.Join(n.Cache, "*.lock"))
			if err != nil || len(locks) != 1 {
				t.Error(locks, err)
				return
			}
			dir := strings.TrimSuffix(locks[0], ".lock")
			if err := disk.Remove(dir); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("want the clone removed")
			}
			n.Shared.Drop(dir)
			again := &Repository{URL: n.URL, Cache: n.Cache, Shared: n.Shared}
			if _, err := again.Fetch(t.Context(), "main"); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
	}
}
