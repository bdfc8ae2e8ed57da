// Package disk bounds what Headgate keeps in its cache directory. What was not used for the longest time is removed to make room, so
// everything in that directory must be possible to get again, and readers must keep the files open that they read.
//
//	a1b2…  a1b2….lock   a directory with a lock beside it is one item, with a1b2….new, .full and .old
//	sha256/a1/a1b2…     so is a file that is named by a hash, and any other beside it to which nothing is written any more
//
// Everything else counts and is never removed. The lock of an item is held while it is written. Its file has the time of the last use.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A Budget bounds a directory. A nil Budget bounds nothing. Its methods are safe for concurrent use.
type Budget struct {
	Dir     string
	Bytes   int64             // of all files; 0 has no limit
	Removed func(item string) // is called when a directory was removed, so that its files are closed; may be nil

	mu      sync.Mutex
	used    int64 // bytes; what removes files by itself makes it too high, until the next look
	looked  time.Time
	running map[*Share]bool
	ended   chan struct{}        // closed when a running share ends
	refused map[string]time.Time // items that were too large, until when they remove nothing
}

const (
	block    = 4 << 10  // what a file takes is a multiple
	piece    = 64 << 10 // the largest write of a share
	rest     = time.Hour
	mostKept = 1000 // refused items that are remembered
)

// A FullError means that what is received has no room.
type FullError struct {
	why   string
	Large bool // it is too large in itself
}

func (e FullError) Error() string { return e.why }

// A Share is the room of one item while it is written. A nil Share has no bound.
type Share struct {
	budget *Budget
	item   string
	fail   context.CancelCauseFunc
	ctx    context.Context //nolint:containedctx // it ends with the share
	before int64           // bytes of the item
	grown  int64
	looked time.Time // by the budget, before the share began
}

// Begin returns the room for an item that grows, and a context that ends if others need the room. Its path may have one of the
// extensions of an item.
func (b *Budget) Begin(ctx context.Context, item string) (*Share, context.Context) {
	if b == nil {
		return nil, ctx
	}
	ctx, fail := context.WithCancelCause(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running == nil {
		b.running, b.ended, b.refused = map[*Share]bool{}, make(chan struct{}), map[string]time.Time{}
	}
	if time.Since(b.looked) > time.Minute {
		b.look()
	}
	s := &Share{budget: b, item: item, fail: fail, ctx: ctx, before: sizeOf(item), looked: b.looked}
	b.running[s] = true
	return s, ctx
}

// End ends the growth of an item. What is left of it counts. A look meanwhile saw as much of it as there was.
func (s *Share) End() {
	if s == nil {
		return
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, s)
	if !b.looked.Equal(s.looked) {
		b.look()
	} else {
		b.used += sizeOf(s.item) - s.before - s.grown
	}
	close(b.ended)
	b.ended = make(chan struct{})
	s.fail(nil)
}

// Explain returns why a share has no room, or else the error.
func (s *Share) Explain(err error) error {
	if s == nil || err == nil {
		return err
	}
	if full, is := errors.AsType[FullError](context.Cause(s.ctx)); is {
		return full
	}
	return err
}

// To returns a writer that first takes the room for what it writes.
func (s *Share) To(w io.Writer) io.Writer {
	if s == nil {
		return w
	}
	return growing{w, s}
}

type growing struct {
	io.Writer

	share *Share
}

func (g growing) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), piece)]
		p = p[len(part):]
		if err = g.share.grow(int64(len(part))); err == nil {
			var wrote int
			wrote, err = g.Writer.Write(part)
			n += wrote
		}
	}
	return n, err
}

// grow takes room for some bytes. It removes items for them. If that is not enough, the largest running share fails.
func (s *Share) grow(n int64) error {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Bytes > 0 && s.before+s.grown+n > b.Bytes/2 {
		b.refuse(s.name())
		return s.full(true, "it needs more than %s, and may take half of --cache-size (%s): raise --cache-size if that is right", quantity(s.before+s.grown), quantity(b.Bytes))
	}
	for b.Bytes > 0 && b.used+n > b.Bytes {
		if time.Now().Before(b.refused[s.name()]) {
			return s.full(true, "it needed more than half of --cache-size (%s) before, so nothing is removed for it now, and %s are not free: raise --cache-size if that is right", quantity(b.Bytes), quantity(s.grown+n))
		}
		if b.makeRoom(n) {
			break
		}
		if err := b.largest(s).yield(s); err != nil {
			return err
		}
	}
	b.used += n
	s.grown += n
	return nil
}

// name returns the path of the item without an extension.
func (s *Share) name() string { return strings.TrimSuffix(s.item, fresh) }

// full fails a share.
func (s *Share) full(large bool, format string, args ...any) error {
	s.fail(FullError{"the cache has no room: " + fmt.Sprintf(format, args...), large})
	return context.Cause(s.ctx)
}

// yield fails a share for another one, and waits until one has ended. The lock is held, but not while it waits.
func (s *Share) yield(to *Share) error {
	b := s.budget
	err := s.full(false, "%s that it received are needed by others that are received now, within --cache-size (%s): it is tried again later", quantity(s.grown), quantity(b.Bytes))
	if s == to {
		return err
	}
	ended := b.ended
	b.mu.Unlock()
	defer b.mu.Lock()
	select {
	case <-ended:
		return nil
	case <-to.ctx.Done():
		return context.Cause(to.ctx)
	}
}

// largest returns the running share that grew most, and s if that is one of several.
func (b *Budget) largest(s *Share) *Share {
	for one := range b.running {
		if one.grown > s.grown {
			s = one
		}
	}
	return s
}

// refuse remembers that an item is too large, so that nothing is removed for it in vain again.
func (b *Budget) refuse(item string) {
	now := time.Now()
	for one, until := range b.refused {
		if now.After(until) || len(b.refused) >= mostKept {
			delete(b.refused, one)
		}
	}
	b.refused[item] = now.Add(rest)
}

// makeRoom removes items until there is room for some bytes, and for a tenth of all. It reports whether there is room for the bytes.
func (b *Budget) makeRoom(n int64) bool {
	items := b.look()
	if b.used+n <= b.Bytes {
		return true
	}
	for _, one := range items {
		if b.used+n <= b.Bytes-b.Bytes/10 {
			break
		}
		if !one.remove() {
			continue
		}
		b.used -= one.bytes
		if b.Removed != nil {
			b.Removed(one.path)
		}
	}
	return b.used+n <= b.Bytes
}

// look counts what is there. It returns the items, the one that was not used for the longest time first.
func (b *Budget) look() []item {
	found := survey{tidy: b.looked.IsZero()}
	found.read(b.Dir)
	unwritten := int64(len(b.running)) * piece // the most of what was taken
	b.used, b.looked = found.bytes+unwritten, time.Now()
	return found.sorted()
}

// Used returns the bytes in the directory, as of the last minute.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.looked) > time.Minute {
		b.look()
	}
	return b.used
}

func quantity(bytes int64) string {
	return resource.NewQuantity((bytes+1<<20-1)>>20<<20, resource.BinarySI).String()
}
