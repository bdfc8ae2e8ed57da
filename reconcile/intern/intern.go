// Package intern shares a value for each key, for as long as someone uses it. A process that runs for months meets more identities,
// tokens and servers than it serves at a time.
package intern

import (
	"runtime"
	"sync"
	"weak"
)

// A Map holds one value for each key. It keeps no value alive: once nobody else points to a value, it is gone, and its key makes another
// one. The zero value is ready to use, by several goroutines.
type Map[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]weak.Pointer[V]
}

// Get returns the value of a key, which first makes if there is none.
func (m *Map[K, V]) Get(key K, first func() *V) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.all[key].Value(); v != nil {
		return v
	}
	if m.all == nil {
		m.all = map[K]weak.Pointer[V]{}
	}
	v := first()
	m.all[key] = weak.Make(v)
	runtime.AddCleanup(v, m.forget, key)
	return v
}

// forget removes a key whose value is gone, unless it has another one already.
func (m *Map[K, V]) forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[key].Value() == nil {
		delete(m.all, key)
	}
}
