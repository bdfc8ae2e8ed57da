package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/preflight"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errLost ends a pass whose lease another process may hold by now.
var errLost = errors.New("the lease was lost or could not be renewed in time, so another pass may have begun")

// A Lock is the sync's lease while we hold it.
type Lock struct {
	cluster *Store
	held    *coordination.Lease
	uid     types.UID
	asking  sync.Mutex                // held while the lease is read
	proven  atomic.Pointer[time.Time] // when we sent the last request that proved that we hold the lease
	end     context.CancelCauseFunc   // ends the context of the work
	stop    context.CancelFunc        // stops the renewals
	stopped chan struct{}
	given   sync.Once // the lease is released or deleted once
}

// Acquire acquires the lease of the sync. It waits up to patience for the current holder. The returned context ends when the lease is
// lost.
func (c *Store) Acquire(ctx context.Context, patience time.Duration) (*Lock, context.Context, error) {
	holder := c.holder // also takes back a lease that an earlier pass of this process could not release
	if c.watched == nil {
		c.watched = &watchedLease{}
	}
	waited := c.watched // also remembers what earlier passes saw
	waited.since, waited.holder = time.Now(), holder
	defer engine.Pause(ctx)()
	defer c.Await("the lease " + c.Sync.Namespace + "/" + api.InventoryName(c.Sync))()
	for {
		asked := time.Now()
		held, err := c.take(ctx, holder, waited)
		if err != nil {
			return nil, nil, err
		}
		if held != nil {
			l := &Lock{cluster: c, held: held, uid: held.UID, stopped: make(chan struct{})}
			l.proves(asked)
			working, end := context.WithCancelCause(api.WithFence(ctx, l.check))
			renewing, stop := context.WithCancel(engine.Without(context.WithoutCancel(ctx))) // renew also while the outcomes are stored
			l.end, l.stop = end, stop
			go l.renew(renewing)
			return l, working, nil
		}
		if time.Since(waited.since) > patience {
			return nil, nil, fmt.Errorf("the sync %s is being applied by another process: the lease %s/%s is held by %s", c.Sync, c.Sync.Namespace, api.InventoryName(c.Sync), waited.by())
		}
		if api.Sleep(ctx, min(time.Second, c.leaseDuration/4)); ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
	}
}

// A watchedLease is the last state of another process's lease, with the time of its last change by our own clock, because the
// clocks of machines differ.
type watchedLease struct {
	holder         string // the caller
	since, changed time.Time
	lease          *coordination.Lease
}

func (w *watchedLease) saw(l *coordination.Lease) {
	if w.lease == nil || w.lease.ResourceVersion != l.ResourceVersion {
		w.lease, w.changed = l, time.Now()
	}
}

// expired reports whether the lease is free: it has no holder, the caller holds it, its holder led before the caller, or the holder is dead. A holder is dead if it
// has not changed the lease for its whole duration while we watched. The time in the lease does not count, because it is that of
// another clock.
func (w *watchedLease) expired() bool {
	spec := w.lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || *spec.HolderIdentity == w.holder || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return true
	}
	if termOf(w.holder).follows(termOf(*spec.HolderIdentity)) {
		return true
	}
	return time.Since(w.changed) > time.Duration(*spec.LeaseDurationSeconds)*time.Second
}

// by returns the holder, for error messages. If the lease was deleted or released in the meantime, there is none.
func (w *watchedLease) by() string {
	if w.lease == nil || w.lease.Spec.HolderIdentity == nil || *w.lease.Spec.HolderIdentity == "" {
		return "other processes in turn"
	}
	spec := w.lease.Spec
	since := "an unknown time"
	if spec.AcquireTime != nil {
		since = spec.AcquireTime.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s since %s", *spec.HolderIdentity, since)
}

// take acquires the lease if it is free. Otherwise, it returns nil and records the holder.
func (c *Store) take(ctx context.Context, holder string, w *watchedLease) (*coordination.Lease, error) {
	leases := c.Leases.Leases(c.Sync.Namespace)
	name := api.InventoryName(c.Sync)
	now, err := leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		now = &coordination.Lease{}
		now.Namespace, now.Name = c.Sync.Namespace, name
		return c.write(ctx, now, holder)
	}
	if err != nil {
		return nil, c.Explain(err, "get", "the lease "+c.Sync.Namespace+"/"+name)
	}
	w.saw(now)
	if !w.expired() {
		return nil, nil
	}
	return c.write(ctx, now, holder)
}

// write acquires a lease. It returns nil if another process was faster.
func (c *Store) write(ctx context.Context, l *coordination.Lease, holder string) (*coordination.Lease, error) {
	leases := c.Leases.Leases(l.Namespace)
	at := metav1.NowMicro()
	// Rounded up, so that other processes do not take us for dead too early.
	seconds := int32(math.Ceil(min(c.leaseDuration.Seconds(), math.MaxInt32)))
	l.Spec = coordination.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &at, RenewTime: &at}
	var written *coordination.Lease
	err := api.Retry(ctx, func() (err error) {
		if l.ResourceVersion != "" {
			written, err = leases.Update(ctx, l, metav1.UpdateOptions{FieldManager: inventory.Manager})
			return err
		}
		written, err = leases.Create(ctx, l, metav1.CreateOptions{FieldManager: inventory.Manager})
		if apierrors.IsNotFound(err) { // no namespace yet
			if err := c.makeNamespace(ctx); err != nil {
				return err
			}
			written, err = leases.Create(ctx, l, metav1.CreateOptions{FieldManager: inventory.Manager})
		}
		return err
	})
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		now, err := leases.Get(ctx, l.Name, metav1.GetOptions{})
		// The write succeeded, but its answer was lost.
		if err == nil && now.Spec.HolderIdentity != nil && *now.Spec.HolderIdentity == holder {
			return now, nil
		}
		return nil, nil
	}
	return written, c.Explain(err, "write", "the lease "+l.Namespace+"/"+l.Name)
}

// makeNamespace creates the namespace of the inventory. No sync owns it.
func (c *Store) makeNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{}
	ns.Name = c.Sync.Namespace
	err := api.Retry(ctx, func() error {
		_, err := c.Core.Namespaces().Create(ctx, ns, metav1.CreateOptions{FieldManager: inventory.Manager})
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return c.Explain(err, "create", "the namespace "+ns.Name+" for the inventory")
}

// check returns an error if we have lost the lease. It asks the API server, unless the last proof is younger than age.
func (l *Lock) check(ctx context.Context, age time.Duration) error {
	l.asking.Lock()
	defer l.asking.Unlock()
	if time.Since(*l.proven.Load()) <= age {
		return nil
	}
	_, err := l.read(ctx)
	return err
}

func (l *Lock) proves(asked time.Time) { l.proven.Store(&asked) }

// read reads the lease. If another process holds it, read ends the work and returns errLost.
func (l *Lock) read(ctx context.Context) (*coordination.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cluster.leaseDuration/4)
	defer cancel()
	asked := time.Now()
	now, err := l.cluster.Leases.Leases(l.cluster.Sync.Namespace).Get(ctx, api.InventoryName(l.cluster.Sync), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && (now.UID != l.uid || now.Spec.HolderIdentity == nil || *now.Spec.HolderIdentity != l.cluster.holder):
		l.end(errLost)
		return nil, errLost
	case err != nil:
		return nil, err
	}
	l.proves(asked)
	return now, nil
}

// renew renews the lease until it is stopped. It ends the work if the renewal fails for too long.
func (l *Lock) renew(ctx context.Context) {
	defer close(l.stopped)
	err := engine.Caught("lease", func() error {
		l.keep(ctx)
		return nil
	})
	if err != nil {
		l.end(err)
	}
}

func (l *Lock) keep(ctx context.Context) {
	duration := l.cluster.leaseDuration
	renewed := time.Now()
	for {
		if api.Sleep(ctx, duration/4); ctx.Err() != nil {
			return
		}
		next := l.held.DeepCopy()
		asked, at := time.Now(), metav1.NowMicro()
		next.Spec.RenewTime = &at
		asking, cancel := context.WithTimeout(ctx, duration/4)
		written, err := l.cluster.Leases.Leases(next.Namespace).Update(asking, next, metav1.UpdateOptions{FieldManager: inventory.Manager})
		cancel()
		switch {
		case err == nil:
			l.held, renewed = written, asked
			l.proves(asked)
		case ctx.Err() != nil:
			return
		case apierrors.IsConflict(err): // a user may have set a label on it
			if now, err := l.read(ctx); err == nil {
				l.held = now
			}
		case apierrors.IsNotFound(err):
			l.end(errLost)
		}
		if time.Since(renewed) > duration*3/4 {
			l.end(errLost)
			return
		}
	}
}

// drop deletes the lease instead of releasing it, and ends the context of the work.
func (l *Lock) drop(ctx context.Context) error {
	var err error
	l.given.Do(func() {
		l.stop()
		<-l.stopped
		l.end(nil)
		err = api.Retry(ctx, func() error {
			return l.cluster.Leases.Leases(l.held.Namespace).Delete(ctx, l.held.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.held.UID}})
		})
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return l.cluster.Explain(err, "delete", "the lease "+l.held.Namespace+"/"+l.held.Name)
}

// Release releases the lease, once. A failure is ignored: the lease expires, and the next pass of this process can take it
// immediately.
func (l *Lock) Release(ctx context.Context) {
	l.given.Do(func() {
		l.stop()
		<-l.stopped
		l.end(nil)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		free := l.held.DeepCopy()
		nobody := ""
		free.Spec.HolderIdentity = &nobody
		_ = api.Retry(ctx, func() error {
			_, err := l.cluster.Leases.Leases(free.Namespace).Update(ctx, free, metav1.UpdateOptions{FieldManager: inventory.Manager})
			return err
		})
	})
}

// A Term is the time in which one process leads others. Who leads now takes the leases of leaders before at once: they have ended, or their
// next read of the lease ends their work.
type Term struct {
	Election string // the UID of the leader's lease; "" if nobody is elected
	Number   int    // grows with every leader
}

// ofTerm separates the term of a holder from its identity.
const ofTerm = "/term/"

// holder returns the identity of a process in its term.
func (t Term) holder(process string) string {
	if t.Election == "" {
		return process
	}
	return fmt.Sprintf("%s%s%d/%s", t.Election, ofTerm, t.Number, process)
}

// termOf returns the term of a holder; the zero value if it has none.
func termOf(holder string) Term {
	election, rest, led := strings.Cut(holder, ofTerm)
	text, _, _ := strings.Cut(rest, "/")
	number, err := strconv.Atoi(text)
	if !led || err != nil {
		return Term{}
	}
	return Term{election, number}
}

// follows reports whether a term began after another one of the same election.
func (t Term) follows(other Term) bool {
	return t.Election != "" && t.Election == other.Election && t.Number > other.Number
}

// identity returns a unique name for this process that shows where it runs.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:8])
}

// Lease returns the lease of the sync.
func (c *Store) Lease(ctx context.Context) (preflight.Lease, error) {
	name := api.InventoryName(c.Sync)
	l, err := c.Leases.Leases(c.Sync.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return preflight.Lease{}, nil
	}
	if err != nil {
		return preflight.Lease{}, c.Explain(err, "get", "the lease "+c.Sync.Namespace+"/"+name)
	}
	return leaseOf(l.Spec, time.Now()), nil
}

// leaseOf reads a lease, whose times may be anything.
func leaseOf(spec coordination.LeaseSpec, now time.Time) preflight.Lease {
	found := preflight.Lease{Exists: true, Undated: spec.RenewTime == nil || spec.LeaseDurationSeconds == nil}
	if spec.HolderIdentity != nil {
		found.Holder = *spec.HolderIdentity
	}
	if found.Undated {
		return found
	}
	found.Duration = int64(*spec.LeaseDurationSeconds)
	found.Age = now.Unix() - min(max(spec.RenewTime.Unix(), math.MinInt32), math.MaxUint32)
	return found
}
