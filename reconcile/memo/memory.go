// Package memo remembers results of rendering: in memory for a running loop, and in a file between processes. Package
// render decides which results, and under which keys.
package memo

import "sync"

// A Memory remembers until the process ends, as much as fits. The zero value is ready. It
// is safe for concurrent use.
type Memory struct {
	mu    sync.Mutex
	facts generations
	// Bodies are large, and a render asks for few of them again: they do not push out facts.
	bodies generations
}

const (
	most     = 16 << 20 // bytes of a generation; there are two of facts and two of bodies
	perEntry = 64       // bytes that a map takes for one, about
)

// Recall returns what was remembered under a key.
func (m *Memory) Recall(key string) (value string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok = m.facts.get(key); ok {
		return value, true
	}
	return m.bodies.get(key)
}

// Remember remembers a value.
func (m *Memory) Remember(key, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(value) < aBody:
		m.facts.put(key, value)
	case len(value) < most/8: // one that is larger would push out too many
		m.bodies.put(key, value)
	}
}

// Generations forget what was not asked for since the young one was full for the last time.
type generations struct {
	young, old map[string]string
	size       int // of the young one
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
