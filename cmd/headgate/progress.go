package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A progress shows on a terminal how far the program is, in one line that it rewrites, once the program has run for a second. All
// other output to the same terminal must use Write, so that the two do not mix. The zero value with a writer and a width works. If
// off is set, progress shows nothing and only passes writes on.
type progress struct {
	w     io.Writer
	width func() int
	off   bool

	mu          sync.Mutex
	phase       string
	done, total int
	began       time.Time
	drawn       bool
	stop        chan struct{} // nil while no phase is shown
}

const (
	patience = time.Second            // shorter phases are not shown
	redraw   = 100 * time.Millisecond // slower than the eye can see, faster than a user gets impatient
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
	// A wrapped line could not be overwritten.
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

// Write clears the line and writes other output to the same terminal.
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
