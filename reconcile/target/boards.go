package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"sync"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/board"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/outbox"
	"headgate.dev/headgate/reconcile/report"
)

// Boards hold what the Syncs of one process that have contexts: Cluster post together: one pair of statuses for each repository and
// cluster. And they hold the back-off of each token that Syncs post with. The zero value is ready to use.
type Boards struct {
	// Tenants gives each namespace a pair of its own, as PullRequests.Tenants does for previews: a Sync posts with the token of no other
	// namespace.
	Tenants bool

	gates outbox.Gates

	mu  sync.Mutex
	all map[boardOf]*together

	expects  sync.Mutex
	expected map[inventory.Sync]seat
}

// A boardOf identifies a board.
type boardOf struct{ repository, cluster string }

// A seat is where a Sync sits: its board, and the branch that it follows.
type seat struct {
	boardOf

	branch string
}

// seatOf returns the seat of a Sync, and whether it has one.
func (b *Boards) seatOf(s v1alpha1.Sync) (at seat, has bool) {
	if s.Spec.Statuses == nil || s.Spec.Statuses.Contexts != v1alpha1.ContextsCluster {
		return at, false
	}
	of, err := repositoryOf(s.Spec)
	cluster := s.Spec.ClusterName
	if b.Tenants && s.Namespace != v1alpha1.DefaultNamespace {
		cluster += "/" + s.Namespace
	}
	return seat{boardOf{of.Base + "/" + of.String(), cluster}, s.Spec.Source.Repo + " " + s.Spec.Source.Ref}, err == nil
}

// expect makes the board of a Sync wait for it, also while it does not run: a status would be green without it.
func (b *Boards) expect(s v1alpha1.Sync) {
	if b == nil {
		return
	}
	b.expects.Lock()
	defer b.expects.Unlock()
	name := NameOf(s)
	delete(b.expected, name)
	if at, has := b.seatOf(s); has {
		if b.expected == nil {
			b.expected = map[inventory.Sync]seat{}
		}
		b.expected[name] = at
	}
}

// forget ends the wait for a Sync that is gone.
func (b *Boards) forget(name inventory.Sync) {
	if b == nil {
		return
	}
	b.expects.Lock()
	defer b.expects.Unlock()
	delete(b.expected, name)
}

// expectedOn returns the Syncs that a board waits for, with the branch that each follows.
func (b *Boards) expectedOn(key boardOf) map[inventory.Sync]string {
	b.expects.Lock()
	defer b.expects.Unlock()
	all := map[inventory.Sync]string{}
	for name, at := range b.expected {
		if at.boardOf == key {
			all[name] = at.branch
		}
	}
	return all
}

// together is a board with its outbox. It posts with the account of the oldest Sync.
type together struct {
	board.Board
	box *outbox.Outbox

	mu      sync.Mutex
	members []*onBoard
	running int
	end     func() // ends what Start began
}

// An onBoard is one Sync on a board.
type onBoard struct {
	*board.Member

	of    *together
	posts posting
	leave func()
}

// join adds a Sync to a board.
func (b *Boards) join(s v1alpha1.Sync, at seat, own *outbox.Outbox, posts posting, in Surroundings) *onBoard {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := at.boardOf
	posts.Cluster = key.cluster
	of := b.all[key]
	if of == nil {
		of = &together{box: &outbox.Outbox{OnError: failed(in), Token: own.Token}}
		of.box.Next, of.Next = of, of.box
		of.Expected = func() map[inventory.Sync]string { return b.expectedOn(key) }
		if in.Cache != "" {
			sum := sha256.Sum256([]byte(key.repository))
			of.box.Dir = filepath.Join(in.Cache, "outbox", key.cluster, "@"+hex.EncodeToString(sum[:8]))
		}
		of.Open = of.box.Pending("", "")
		if b.all == nil {
			b.all = map[boardOf]*together{}
		}
		b.all[key] = of
	}
	m := &onBoard{Member: of.Join(NameOf(s), at.branch), of: of, posts: posts}
	of.mu.Lock()
	of.members = append(of.members, m)
	of.mu.Unlock()
	m.leave = sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		m.Leave()
		if of.forget(m) {
			delete(b.all, key)
		}
	})
	return m
}

// forget removes a Sync, and reports whether it was the last one.
func (t *together) forget(m *onBoard) (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.members {
		if other == m {
			t.members = append(t.members[:i:i], t.members[i+1:]...)
			break
		}
	}
	return len(t.members) == 0
}

// Publish posts the statuses of the board.
func (t *together) Publish(ctx context.Context, r report.Report) error {
	t.mu.Lock()
	var posts posting
	if len(t.members) > 0 {
		posts = t.members[0].posts
	}
	t.mu.Unlock()
	if posts.Poster == nil {
		return nil // all Syncs have left
	}
	return posts.Publish(ctx, r)
}

// Waiting returns how many reports wait for the forge. The oldest Sync counts them for all.
func (m *onBoard) Waiting() int {
	if !m.First() {
		return 0
	}
	return m.of.box.Waiting()
}

// Start posts what waits until the contexts of all Syncs of the board have ended.
func (m *onBoard) Start(ctx context.Context, by *engine.Queue) (wait func()) {
	t := m.of
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running++; t.running == 1 {
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		posted := t.box.Start(own, by)
		t.end = func() { stop(); posted() }
	}
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		t.mu.Lock()
		t.running--
		end := func() {}
		if t.running == 0 {
			end = t.end
		}
		t.mu.Unlock()
		end()
	})
	return func() { <-ended }
}
