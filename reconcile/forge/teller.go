package forge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// A board is what a forge keeps statuses on.
type board interface {
	// list is the newest status of every context of a commit, by context.
	list(ctx context.Context, commit string) (map[string]Status, error)
	create(ctx context.Context, s Status) error
	// keep is a status as it stands there once it was created: within the limits of the forge.
	keep(s Status) Status
}

// A teller posts to a board what does not stand there yet.
type teller struct {
	board
	courier *courier

	mu    sync.Mutex
	known []commitStatuses // least recently used first
}

// commitStatuses is what stands on one commit, as far as we know.
type commitStatuses struct {
	commit  string
	current map[string]Status
}

// mostKnown bounds for how many commits a teller remembers what stands on them. A loop
// needs one or two.
const mostKnown = 32

func (t *teller) Post(ctx context.Context, s Status) error {
	if _, err := t.courier.token(ctx); err != nil { // from now on it can be hidden
		return err
	}
	s.Description = t.courier.hide(plain(s.Description))
	s = t.keep(s)
	err := t.post(ctx, s)
	if err == nil {
		return nil
	}
	t.forget(s.Commit) // whether it was written is not known
	return t.courier.discreet(err)
}

// discreet is an error that does not say the token.
func (c *courier) discreet(err error) error {
	if later, ok := errors.AsType[*Later](err); ok {
		return &Later{After: later.After, Err: hidden{c.hide(err.Error()), later.Err}}
	}
	return errors.New(c.hide(err.Error()))
}

// Stands is what was posted last, as far as it is known, or stands there.
func (t *teller) Stands(ctx context.Context, commit, of string) (Status, error) {
	if _, err := t.courier.token(ctx); err != nil {
		return Status{}, err
	}
	current, err := t.current(ctx, commit)
	if err != nil {
		return Status{}, t.courier.discreet(err)
	}
	return current[of], nil
}

// current is what stands on a commit.
func (t *teller) current(ctx context.Context, commit string) (map[string]Status, error) {
	if current, ok := t.recall(commit); ok {
		return current, nil
	}
	current, err := t.list(ctx, commit)
	if err == nil {
		t.remember(commit, current)
	}
	return current, err
}

func (t *teller) post(ctx context.Context, s Status) error {
	current, err := t.current(ctx, s.Commit)
	if err != nil {
		return err
	}
	if stands, ok := current[s.Context]; ok && stands == s {
		return nil
	}
	if err := t.create(ctx, s); err != nil {
		return err
	}
	t.note(s)
	return nil
}

// recall is a copy of what is known of a commit.
func (t *teller) recall(commit string) (map[string]Status, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.index(commit)
	if i < 0 {
		return nil, false
	}
	known := t.known[i]
	t.known = append(slices.Delete(t.known, i, i+1), known)
	return maps.Clone(known.current), true
}

func (t *teller) remember(commit string, current map[string]Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.index(commit); i >= 0 {
		t.known = slices.Delete(t.known, i, i+1)
	}
	if len(t.known) == mostKnown {
		t.known = slices.Delete(t.known, 0, 1)
	}
	t.known = append(t.known, commitStatuses{commit, maps.Clone(current)})
}

func (t *teller) note(s Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.index(s.Commit); i >= 0 {
		t.known[i].current[s.Context] = s
	}
}

func (t *teller) forget(commit string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.index(commit); i >= 0 {
		t.known = slices.Delete(t.known, i, i+1)
	}
}

func (t *teller) index(commit string) int {
	return slices.IndexFunc(t.known, func(k commitStatuses) bool { return k.commit == commit })
}

// hidden is an error whose text has no token in it, and whose cause can be compared.
type hidden struct {
	text string
	err  error
}

func (h hidden) Error() string        { return h.text }
func (h hidden) Is(target error) bool { return errors.Is(h.err, target) }
