// Package memo remembers results of rendering: in memory for a running loop, and in a file between processes. Package
// render decides which results, and under which keys.
package memo

import "sync"

// A Memory remembers values until the process ends, within a limit. The zero value is ready to use. It is safe for
// concurrent use.
type Memory struct {
	mu    sync.Mutex
	facts generations
	// Bodies are large, and a render requests few of them again, so they must not displace facts.
	bodies generations
}

const (
	most     = 16 << 20 // maximum bytes of a generation; facts and bodies have two generations each
	perEntry = 64       // approximate memory of a map entry
)

// Recall returns the value of a key.
func (m *Memory) Recall(key string) (value string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok = m.facts.get(key); ok {
		return value, true
	}
	return m.bodies.get(key)
}

// Remember stores a value.
func (m *Memory) Remember(key, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(value) < aBody:
		m.facts.put(key, value)
	case len(value) < most/8: // a larger value would displace too many others
		m.bodies.put(key, value)
	}
}

// generations drop the values that were not requested since the young generation was last full.
type generations struct {
	young, old map[string]string
	size       int // bytes in the young generation
}

func (g *generations) get(key string) (string, bool) {
	if value, ok := g.young[key]; ok {
		return value, true
	}
	value, ok := g.old[key]
	if ok {
		g.put(key, value)
	}
	return value, ok
}

func (g *generations) put(key, value string) {
	if was, ok := g.young[key]; ok {
		g.size -= len(key) + len(was) + perEntry
	}
	size := len(key) + len(value) + perEntry
	if g.young == nil || g.size+size > most {
		g.young, g.old, g.size = map[string]string{}, g.young, 0
	}
	g.young[key] = value
	g.size += size
}
