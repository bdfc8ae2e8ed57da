package remote

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// metered is a connection that fails after a number of bytes from the server.
type metered struct {
	net.Conn

	limit    int64
	received int64 // only the one goroutine that reads uses it
	exceeded atomic.Bool
	closed   atomic.Bool
}

func (m *metered) Close() error {
	m.closed.Store(true)
	return m.Conn.Close()
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if m.received += int64(n); m.received > m.limit {
		m.exceeded.Store(true)
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// beginning keeps the beginning of what is written to it.
type beginning struct {
	mu   sync.Mutex
	text []byte
}

func (b *beginning) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p[:min(len(p), 4<<10-len(b.text))]...)
	return len(p), nil
}

func (b *beginning) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
