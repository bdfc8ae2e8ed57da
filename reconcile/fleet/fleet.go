// Package fleet runs Syncs in one process, and starts, replaces and stops each of them while all others go on. It does not decide which
// Syncs run: 'headgate run' takes them from files, and the controller from a cluster.
package fleet

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/audit"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/metrics"
	"headgate.dev/headgate/reconcile/target"
)

// A Fleet holds the Syncs that run. It is safe for concurrent use, but one Sync must not be started and stopped at the same time.
type Fleet struct {
	Peers   *reconcile.Peers // the syncs that remain know of those that are removed; may be nil
	Metrics *metrics.Metrics // shows the Syncs that run
	Audit   *audit.Log       // records what people decide in the Syncs; nil records none

	mu      sync.Mutex
	seen    map[inventory.Sync]*v1alpha1.Sync // as they ran last
	members map[inventory.Sync]*Member
	ended   sync.WaitGroup
}

// A Member is a Sync that runs.
type Member struct {
	*target.Target

	sync  v1alpha1.Sync
	stop  context.CancelFunc
	ended chan struct{}
}

// Same reports whether a Sync that runs as one value goes on as another. Approvals are read before every pass, so another annotation
// does not matter, and neither does a status.
func Same(a, b v1alpha1.Sync) bool {
	return target.NameOf(a) == target.NameOf(b) && a.UID == b.UID && reflect.DeepEqual(a.Spec, b.Spec)
}

// Start runs a Sync that does not run yet, until ctx is done or it is stopped.
func (f *Fleet) Start(ctx context.Context, s v1alpha1.Sync, as *target.Target) {
	ctx, cancel := context.WithCancel(ctx)
	one := &Member{as, s, cancel, make(chan struct{})}
	if of := as.Loop.Reconciler.Sync; as.Passes() {
		f.Metrics.Add(of.Namespace, of.Name, as.Waiting())
		f.Metrics.Suspend(of.Namespace, of.Name, until(s))
	}
	f.mu.Lock()
	if f.members == nil {
		f.members, f.seen = map[inventory.Sync]*Member{}, map[inventory.Sync]*v1alpha1.Sync{}
	}
	f.members[target.NameOf(s)] = one
	before := f.seen[target.NameOf(s)]
	f.seen[target.NameOf(s)] = &s
	f.mu.Unlock()
	f.Audit.Note(Decided(before, &s)...)
	f.ended.Add(1)
	wait := one.Target.Start(ctx)
	context.AfterFunc(ctx, func() { // a Sync at rest has no goroutine
		defer f.ended.Done()
		defer close(one.ended)
		wait()
	})
}

// until returns when a suspension should have ended; the zero time if it has no end, or there is none.
func until(s v1alpha1.Sync) time.Time {
	if !s.Spec.Suspend || s.Spec.Suspension == nil || s.Spec.Suspension.Until == nil {
		return time.Time{}
	}
	return s.Spec.Suspension.Until.Time
}

// Stop stops Syncs that will run again, and returns once their passes have ended.
func (f *Fleet) Stop(names ...inventory.Sync) {
	var stopped []*Member
	f.mu.Lock()
	for _, name := range names {
		if one := f.members[name]; one != nil {
			one.stop()
			stopped = append(stopped, one)
			delete(f.members, name)
		}
	}
	f.mu.Unlock()
	for _, one := range stopped {
		<-one.ended
		if err := one.Close(); err != nil {
			slog.Warn("temporary files stay", "sync", target.NameOf(one.sync).String(), "error", err)
		}
	}
}

// Remove stops Syncs that will not run again, and forgets them.
func (f *Fleet) Remove(names ...inventory.Sync) {
	f.Stop(names...)
	for _, name := range names {
		f.Peers.Leave(name)
		f.mu.Lock()
		delete(f.seen, name)
		f.mu.Unlock()
		f.Metrics.Remove(name.Namespace, name.Name)
	}
}

// Of returns a Sync that runs, and how it runs.
func (f *Fleet) Of(name inventory.Sync) (s v1alpha1.Sync, as *target.Target, runs bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.members[name]
	if one == nil {
		return v1alpha1.Sync{}, nil, false
	}
	return one.sync, one.Target, true
}

// Annotate replaces a Sync that runs with one whose annotations differ, and makes a pass soon.
func (f *Fleet) Annotate(s v1alpha1.Sync) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.members[target.NameOf(s)]; one != nil {
		one.sync = s
		one.Approved()
	}
}

// Syncs returns the Syncs that run, sorted by name.
func (f *Fleet) Syncs() []v1alpha1.Sync {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]v1alpha1.Sync, 0, len(f.members))
	for _, one := range f.members {
		all = append(all, one.sync)
	}
	slices.SortFunc(all, func(a, b v1alpha1.Sync) int {
		return strings.Compare(target.NameOf(a).String(), target.NameOf(b).String())
	})
	return all
}

// Each calls a function with every Sync that runs, and how it runs. The function must not start or stop one.
func (f *Fleet) Each(do func(*v1alpha1.Sync, *target.Target)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.members {
		do(&one.sync, one.Target)
	}
}

// Targets returns how the Syncs run.
func (f *Fleet) Targets() []*target.Target {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*target.Target
	for _, one := range f.members {
		all = append(all, one.Target)
	}
	return all
}

// Go runs something beside the Syncs. Wait waits for it.
func (f *Fleet) Go(do func()) { f.ended.Go(do) }

// Wait waits until everything has ended, and removes temporary files.
func (f *Fleet) Wait() error {
	f.ended.Wait()
	var problems []error
	for _, one := range f.Targets() {
		problems = append(problems, one.Close())
	}
	return errors.Join(problems...)
}
