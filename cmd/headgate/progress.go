package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A progress shows how far the program is. On a terminal, it is one line that is rewritten, once the program has run for a second. All
// other output to the same terminal must use Write, so that the two do not mix. The zero value with a writer and a width works. If
// lines is set, because the output is no terminal, it is a new line every ten seconds. If off is set, progress shows nothing and only
// passes writes on.
type progress struct {
	w     io.Writer
	width func() int
	lines bool
	off   bool

	mu          sync.Mutex
	phase       string
	done, total int
	began       time.Time
	drawn       bool
	printed     int           // lines since began
	stop        chan struct{} // nil while no phase is shown
}

const (
	patience = time.Second            // shorter phases are not shown
	redraw   = 100 * time.Millisecond // slower than the eye can see, faster than a user gets impatient
	perLine  = 10 * time.Second       // a log of a long run stays short
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
	p.began, p.printed, p.stop = time.Now(), 0, make(chan struct{})
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
		if p.stop == stop {
			p.draw(time.Since(p.began))
		}
		p.mu.Unlock()
	}
}

// draw shows the progress if that is due after this time.
func (p *progress) draw(after time.Duration) {
	switch {
	case p.lines && after >= time.Duration(p.printed+1)*perLine:
		p.printed++
		fmt.Fprintln(p.w, p.text())
	case !p.lines && after >= patience:
		p.drawn = true
		fmt.Fprintf(p.w, "\r\x1b[K%s", p.line())
	}
}

// line returns the text that fits a line of the terminal, because a wrapped line could not be overwritten.
func (p *progress) line() string {
	line := p.text()
	if most := p.width() - 1; most > 0 && len(line) > most {
		line = line[:most]
	}
	return line
}

func (p *progress) text() string {
	line := p.phase
	if p.total > 0 {
		line += fmt.Sprintf(" %d/%d", p.done, p.total)
	}
	return line + fmt.Sprintf(" (%ds)", int(time.Since(p.began).Seconds()))
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
