package forge

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// A statusAPI reads and writes the commit statuses of a repository.
type statusAPI interface {
	// list returns the newest status of every context of a commit, by context.
	list(ctx context.Context, commit string) (map[string]Status, error)
	create(ctx context.Context, s Status) error
	// keep returns a status within the limits of the forge, as list will return it.
	keep(s Status) Status
}

// A poster posts the statuses that the forge does not have yet.
type poster struct {
	statusAPI
	transport *transport

	mu    sync.Mutex
	known []commitStatuses // least recently used first
}

// commitStatuses are the known statuses of one commit.
type commitStatuses struct {
	commit  string
	current map[string]Status
}

// maxKnown is the maximum number of commits whose statuses a poster remembers. A loop needs one or two.
const maxKnown = 32

func (p *poster) Post(ctx context.Context, s Status) error {
	if _, err := p.transport.token(ctx); err != nil { // hide needs the current token
		return err
	}
	s.Description, s.Into = p.transport.hide(plain(s.Description)), p.transport.hide(s.Into)
	s = p.keep(s)
	err := p.post(ctx, s)
	if err == nil {
		return nil
	}
	p.forget(s.Commit) // the forge may have stored the status
	return p.transport.redacted(err)
}

// Current returns the last posted status, or the one on the forge.
func (p *poster) Current(ctx context.Context, commit, of string) (Status, error) {
	if _, err := p.transport.token(ctx); err != nil {
		return Status{}, err
	}
	current, err := p.statuses(ctx, commit)
	if err != nil {
		return Status{}, p.transport.redacted(err)
	}
	return current[of], nil
}

// statuses returns the statuses of a commit.
func (p *poster) statuses(ctx context.Context, commit string) (map[string]Status, error) {
	if current, ok := p.recall(commit); ok {
		return current, nil
	}
	current, err := p.list(ctx, commit)
	if err == nil {
		p.remember(commit, current)
	}
	return current, err
}

func (p *poster) post(ctx context.Context, s Status) error {
	current, err := p.statuses(ctx, s.Commit)
	if err != nil {
		return err
	}
	if stands, ok := current[s.Context]; ok && stands == s {
		return nil
	}
	if err := p.create(ctx, s); err != nil {
		return err
	}
	p.note(s)
	return nil
}

// recall returns a copy of the remembered statuses of a commit.
func (p *poster) recall(commit string) (map[string]Status, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.index(commit)
	if i < 0 {
		return nil, false
	}
	known := p.known[i]
	p.known = append(slices.Delete(p.known, i, i+1), known)
	return maps.Clone(known.current), true
}

func (p *poster) remember(commit string, current map[string]Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.index(commit); i >= 0 {
		p.known = slices.Delete(p.known, i, i+1)
	}
	if len(p.known) == maxKnown {
		p.known = slices.Delete(p.known, 0, 1)
	}
	p.known = append(p.known, commitStatuses{commit, maps.Clone(current)})
}

func (p *poster) note(s Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.index(s.Commit); i >= 0 {
		p.known[i].current[s.Context] = s
	}
}

func (p *poster) forget(commit string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.index(commit); i >= 0 {
		p.known = slices.Delete(p.known, i, i+1)
	}
}

func (p *poster) index(commit string) int {
	return slices.IndexFunc(p.known, func(k commitStatuses) bool { return k.commit == commit })
}
