package intern

import (
	"runtime"
	"testing"
)

type shared struct{ name string }

// Two users of a key have one value, because sharing it is the purpose.
func TestShared(t *testing.T) {
	var m Map[string, shared]
	first := m.Get("a", func() *shared { return &shared{"a"} })
	if again := m.Get("a", func() *shared { return &shared{"another"} }); again != first {
		t.Errorf("got %v, want the value of before", again)
	}
	if other := m.Get("b", func() *shared { return &shared{"b"} }); other == first {
		t.Error("another key has the same value")
	}
	runtime.KeepAlive(first)
}

// A process that runs for months must not keep what nobody uses: a tenant can name a new account every second.
func TestUnusedIsForgotten(t *testing.T) {
	var m Map[int, shared]
	kept := m.Get(-1, func() *shared { return &shared{"kept"} })
	for key := range 1000 {
		m.Get(key, func() *shared { return &shared{"unused"} })
	}
	for m.size() > 1 {
		runtime.GC()
		runtime.Gosched()
	}
	if again := m.Get(-1, func() *shared { return nil }); again != kept {
		t.Error("a value in use was forgotten")
	}
}

func (m *Map[K, V]) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}
