package disk

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
)

const mega = 1 << 20

// A cache is a directory in which a test makes items.
type cache struct {
	*testing.T
	dir string
}

func (c cache) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c cache) path(name string) string { return filepath.Join(c.dir, name) }

func (c cache) write(name string, bytes int) {
	c.Helper()
	c.must(os.MkdirAll(filepath.Dir(c.path(name)), 0o700))
	c.must(os.WriteFile(c.path(name), make([]byte, bytes), 0o600))
}

// item makes a directory with a lock, which was used some hours ago.
func (c cache) item(name string, bytes, hours int) {
	c.Helper()
	c.write(name+"/objects/pack/a.pack", bytes)
	c.write(name+lock, 0)
	c.age(name+lock, hours)
}

func (c cache) age(name string, hours int) {
	c.Helper()
	at := time.Now().Add(-time.Duration(hours) * time.Hour)
	c.must(os.Chtimes(c.path(name), at, at))
}

// left returns what is in the directory and in one below it, without locks.
func (c cache) left() []string {
	c.Helper()
	var names []string
	for _, pattern := range []string{"*", "previews/*", "sha256/*/*"} {
		found, err := filepath.Glob(c.path(pattern))
		c.must(err)
		for _, one := range found {
			name, _ := filepath.Rel(c.dir, one)
			if !strings.HasSuffix(name, lock) && name != "previews" && name != "sha256" {
				names = append(names, name)
			}
		}
	}
	return names
}

// receive writes a new item of some bytes.
func (c cache) receive(b *Budget, name string, bytes int) error {
	c.Helper()
	share, _ := b.Begin(c.Context(), c.path(name))
	defer share.End()
	c.write(name+"/part", 0)
	file, err := os.Create(c.path(name + "/part"))
	c.must(err)
	defer file.Close()
	_, err = share.To(file).Write(make([]byte, bytes))
	if err != nil {
		c.must(os.RemoveAll(c.path(name)))
	}
	return err
}

func TestRemoves(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	cases := map[string]struct {
		reason string
		begin  func(c cache)
		want   []string
	}{
		"Fits":   {"Nothing is removed while there is room.", func(c cache) { c.item("a", mega, 1) }, []string{"a", "new"}},
		"Oldest": {"The item that was not used for the longest time goes first.", func(c cache) { c.item("a", 4*mega, 1); c.item("b", 4*mega, 2); c.item("c", mega, 3) }, []string{"a", "new"}},
		"Deeper": {"Clones of previews are items, too.", func(c cache) { c.item("a", 4*mega, 1); c.item("previews/b", 4*mega, 2) }, []string{"a", "new"}},
		"Blobs": {"So are files of packages.", func(c cache) {
			c.item("a", 4*mega, 1)
			c.write("sha256/ab/"+hash, 4*mega)
			c.age("sha256/ab/"+hash, 2)
		}, []string{"a", "new"}},
		"Unfinished": {"A process was killed, often, while it received packages.", func(c cache) {
			c.item("a", 4*mega, 1)
			c.write("sha256/ab/writing-1", 2*mega)
			c.age("sha256/ab/writing-1", 2)
			c.write("sha256/ab/writing-2", mega) // another process writes it
		}, []string{"a", "new", "sha256/ab/writing-2"}},
		"Killed": {"What a killed process left of an item belongs to it.", func(c cache) { c.item("a", 4*mega, 1); c.item("b", mega, 2); c.write("b.full/x", 4*mega) }, []string{"a", "new"}},
		"Locked": {"An item that is being written stays.", func(c cache) {
			c.item("a", 4*mega, 1)
			c.item("b", 4*mega, 2)
			l := flock.New(c.path("b" + lock))
			c.must(l.Lock())
			c.Cleanup(func() { _ = l.Close() })
		}, []string{"b", "new"}},
		"Others": {"What is no item counts, and stays.", func(c cache) { c.item("a", 4*mega, 1); c.write("outbox/x", 4*mega) }, []string{"new", "outbox"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := cache{t, t.TempDir()}
			tc.begin(c)
			b := &Budget{Dir: c.dir, Bytes: 10 * mega}
			if err := c.receive(b, "new", 4*mega); err != nil {
				t.Fatal(tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, c.left()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if used, is := b.Used(), sizeOf(c.dir); used > b.Bytes || is > b.Bytes {
				t.Errorf("want at most %d bytes, got %d, and %d counted", b.Bytes, is, used)
			}
		})
	}
}

// A process that is killed while it removes or makes an item leaves a part of it, which the next one removes.
func TestTidy(t *testing.T) {
	c := cache{t, t.TempDir()}
	c.item("a", mega, 1)
	c.write("a.old/objects/x", mega)
	c.write("a.new/objects/x", mega)
	c.item("b", mega, 1)
	c.must(os.Rename(c.path("b"), c.path("b.old")))
	c.item("c", mega, 1)
	c.must(os.Rename(c.path("c"), c.path("c.full"))) // opening the clone restores it
	b := &Budget{Dir: c.dir, Bytes: 10 * mega}
	if used := b.Used(); used < 2*mega || used > 3*mega {
		t.Errorf("want what is left, got %d", used)
	}
	if diff := cmp.Diff([]string{"a", "c.full"}, c.left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// A pack that gets its name while the cache is counted counts: otherwise, others take its room as well.
func TestRenamedWhileCounted(t *testing.T) {
	c := cache{t, t.TempDir()}
	c.item("a", mega, 1)
	want := sizeOf(c.dir)
	ctx, stop := context.WithCancel(t.Context())
	var renaming sync.WaitGroup
	renaming.Go(func() {
		from, to := c.path("a/objects/pack/a.pack"), c.path("a/objects/pack/tmp_pack_1")
		for ctx.Err() == nil {
			if err := os.Rename(from, to); err != nil {
				t.Error(err)
			}
			from, to = to, from
		}
	})
	for range 1000 {
		if got := sizeOf(c.dir); got != want {
			t.Errorf("want %d bytes, got %d", want, got)
			break
		}
	}
	stop()
	renaming.Wait()
}

// A share that fails gives its room back once. If it gave it back twice, others would exceed the limit.
func TestFailedShareGivesItsRoomOnce(t *testing.T) {
	c := cache{t, t.TempDir()}
	b := &Budget{Dir: c.dir, Bytes: 10 * mega}
	c.write("outbox", 4*mega)
	share, _ := b.Begin(t.Context(), c.path("a"))
	_, err := share.To(io.Discard).Write(make([]byte, 3*mega)) // and all of it was removed
	c.must(err)
	b.mu.Lock()
	b.look()
	b.mu.Unlock()
	share.End()
	if used := b.Used(); used < 4*mega {
		t.Errorf("want 4 MiB, got %d", used)
	}
}

// The largest of the running shares fails if there is no room, also if it is silent, and the others go on.
func TestLargestFails(t *testing.T) {
	c := cache{t, t.TempDir()}
	b := &Budget{Dir: c.dir, Bytes: 10 * mega}
	shares, ends := map[string]*Share{}, map[string]context.Context{}
	receive := func(name string, bytes int) {
		t.Helper()
		file, err := os.OpenFile(c.path(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		c.must(err)
		defer file.Close()
		_, err = shares[name].To(file).Write(make([]byte, bytes))
		c.must(err)
	}
	for name, bytes := range map[string]int{"a": 4 * mega, "b": 3 * mega, "c": 2 * mega} {
		shares[name], ends[name] = b.Begin(t.Context(), c.path(name))
		receive(name, bytes)
	}
	go func() {
		<-ends["a"].Done()
		_ = os.Remove(c.path("a"))
		shares["a"].End()
	}()
	receive("c", 2*mega)
	for name, want := range map[string]bool{"a": true, "b": false, "c": false} {
		got := shares[name].Explain(errors.New("any"))
		if _, is := errors.AsType[FullError](got); is != want {
			t.Errorf("%s: want failed %v, got %v", name, want, got)
		}
	}
	if used := b.Used(); used > b.Bytes {
		t.Errorf("want at most %d bytes, got %d", b.Bytes, used)
	}
}

// A share ends with its context while it waits for room.
func TestWaitEnds(t *testing.T) {
	c := cache{t, t.TempDir()}
	b := &Budget{Dir: c.dir, Bytes: 10 * mega}
	large, _ := b.Begin(t.Context(), c.path("x"))
	large.grown = mega
	ctx, cancel := context.WithCancel(t.Context())
	s, _ := b.Begin(ctx, c.path("y"))
	cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.largest(s).yield(s); !errors.Is(err, context.Canceled) {
		t.Errorf("want it canceled, got %v", err)
	}
}
