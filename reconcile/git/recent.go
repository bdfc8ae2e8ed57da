package git

import (
	"container/list"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// recentBytes is how much of what was read is remembered: a delta is read with
// its base, and neighbours share bases.
const recentBytes = 96 << 20

type place struct {
	pack *pack
	at   int64
}

type known struct {
	kind plumbing.ObjectType
	data []byte
}

// recent remembers the objects that were read last, up to a number of bytes.
type recent struct {
	limit int

	mu    sync.Mutex
	bytes int
	byUse list.List // of entry, the latest first
	at    map[place]*list.Element
}

type entry struct {
	place
	known
}

func (r *recent) get(p place) (known, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.at[p]
	if !ok {
		return known{}, false
	}
	r.byUse.MoveToFront(e)
	return e.Value.(entry).known, true //nolint:forcetypeassert // put adds nothing else
}

func (r *recent) put(p place, k known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.at[p]; ok || len(k.data) > r.limit {
		return
	}
	if r.at == nil {
		r.at = map[place]*list.Element{}
	}
	r.at[p] = r.byUse.PushFront(entry{p, k})
	for r.bytes += len(k.data); r.bytes > r.limit; {
		last := r.byUse.Back()
		old := r.byUse.Remove(last).(entry) //nolint:forcetypeassert // likewise
		delete(r.at, old.place)
		r.bytes -= len(old.data)
	}
}
