package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A progress tells on a terminal how far the program is, in one line that is written
// over and over, once it has taken a second. Everything else that goes to the same
// terminal goes through Write, so that the two do not mix. The zero value with a
// writer works; with off set it only passes on what is written.
type progress struct {
	w     io.Writer
	width func() int
	off   bool

	mu          sync.Mutex
	phase       string
	done, total int
	began       time.Time
	drawn       bool
	stop        chan struct{} // nil while nothing is shown
}

const (
	patience = time.Second            // what takes less is not worth a line
	redraw   = 100 * time.Millisecond // slower than the eye, faster than impatience
)

// Phase shows the current phase and its progress; total is 0 if it is not known. It is safe for concurrent use.
func (p *progress) Phase(phase string, done, total int) {
	if p.off {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.done, p.total = phase, done, total
	if p.stop != nil {
		return
	}
	p.began, p.stop = time.Now(), make(chan struct{})
	go p.show(p.stop)
}

func (p *progress) show(stop chan struct{}) {
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		if p.stop == stop && time.Since(p.began) >= patience {
			p.drawn = true
			fmt.Fprintf(p.w, "\r\x1b[K%s", p.line())
		}
		p.mu.Unlock()
	}
}

func (p *progress) line() string {
	line := p.phase
	if p.total > 0 {
		line += fmt.Sprintf(" %d/%d", p.done, p.total)
	}
	line += fmt.Sprintf(" (%ds)", int(time.Since(p.began).Seconds()))
	// A line that wraps could not be written over.
	if most := p.width() - 1; most > 0 && len(line) > most {
		line = line[:most]
	}
	return line
}

// Stop removes the line. A later phase may start another one.
func (p *progress) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop == nil {
		return
	}
	close(p.stop)
	p.stop = nil
	p.clear()
}

// Write writes something else to the same terminal.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	return p.w.Write(b)
}

func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}
