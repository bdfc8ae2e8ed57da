package git

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/engine"
)

// Shared lets the Repositories of one process that read the same place with the same credentials share a clone, and the lists of
// its refs. The zero value is ready to use.
type Shared struct {
	mu   sync.Mutex
	used map[sharedKey]*sharedBackend
}

// A sharedKey is everything that may make a difference to what a server answers, and to what is accepted of it.
type sharedKey struct {
	place     string            // the directory of a local repository or of a clone
	auth      [sha256.Size]byte // a hash, so that a replaced token does not stay in memory
	limits    Limits
	fetched   bool
	transport http.RoundTripper
}

type sharedBackend struct {
	backend

	last time.Time // it was used
}

// unused is how long a backend is kept that nobody uses. Tokens of apps are replaced every hour.
const unused = time.Hour

// backend returns the backend of a key, which make makes if there is none.
func (s *Shared) backend(key sharedKey, made func() (backend, error)) (backend, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if one := s.used[key]; one != nil {
		one.last = now
		return one.backend, nil
	}
	one, err := made()
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(s.used, func(_ sharedKey, one *sharedBackend) bool { return now.Sub(one.last) > unused })
	if s.used == nil {
		s.used = map[sharedKey]*sharedBackend{}
	}
	s.used[key] = &sharedBackend{one, now}
	return one, nil
}

// Drop closes the files of a clone that was removed, as soon as nobody reads them.
func (s *Shared) Drop(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, one := range s.used {
		if c, is := one.backend.(*clone); is && key.place == place {
			c.drop()
		}
	}
}

// tips holds the last list of the refs of a repository.
type tips struct {
	asking   chan struct{} // holds a value while a list is requested
	fetching chan struct{} // holds a value while somebody fetches what others may need, too

	mu      sync.Mutex
	began   time.Time // when the last list was requested
	last    refs
	changes int // number of lists that differed from the one before
	err     error
}

func newTips() *tips {
	return &tips{asking: make(chan struct{}, 1), fetching: make(chan struct{}, 1)}
}

// get returns the refs. It calls list unless a list was requested since the call, or within the age that ctx allows.
func (t *tips) get(ctx context.Context, list func() (refs, error)) (refs, error) {
	asked := time.Now()
	if known, ok, err := t.known(asked, engine.Age(ctx)); ok {
		return known, err
	}
	done, err := take(ctx, t.asking)
	if err != nil {
		return refs{}, err
	}
	defer done()
	if known, ok, err := t.known(asked, engine.Age(ctx)); ok {
		return known, err
	}
	began := time.Now()
	now, err := list()
	if err != nil && ctx.Err() != nil { // the caller gave up, which is no answer to others
		return now, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && !t.began.IsZero() && !(now.head == t.last.head && maps.Equal(now.names, t.last.names)) {
		t.changes++
	}
	t.began, t.err = began, err
	if err == nil {
		t.last = now
	}
	return now, err
}

// take waits until a channel for one value is empty, and fills it until done is called.
func take(ctx context.Context, one chan struct{}) (done func(), err error) {
	select {
	case one <- struct{}{}:
		return func() { <-one }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// known returns the last answer if it is recent enough. An error is only an answer to those who asked before.
func (t *tips) known(asked time.Time, age time.Duration) (_ refs, recent bool, _ error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := asked.Add(-age)
	if t.err != nil {
		since = asked
	}
	return t.last, !t.began.IsZero() && !t.began.Before(since), t.err
}

// version returns a number that differs if the refs differ, and whether they were listed within the age.
func (t *tips) version(age time.Duration) (changes int, recent bool) {
	_, recent, err := t.known(time.Now(), age)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes, recent && err == nil
}
