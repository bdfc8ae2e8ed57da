package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/inventory"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errLost ends a pass whose lease another process may hold by now.
var errLost = errors.New("the lease could not be renewed in time, so another pass may have begun")

// A lock is the sync's lease while we hold it.
type lock struct {
	cluster *Cluster
	held    *coordination.Lease
	end     context.CancelCauseFunc // ends the context of the work
	stop    context.CancelFunc      // stops the renewals
	stopped chan struct{}
	given   sync.Once // the lease is released or deleted once
}

// lock acquires the lease of the sync. It waits up to patience for the current holder. The returned context ends when the lease is
// lost.
func (c *Cluster) lock(ctx context.Context, patience time.Duration) (*lock, context.Context, error) {
	holder := c.holder // also takes back a lease that an earlier pass of this process could not release
	waited := watchedLease{since: time.Now(), holder: holder}
	defer c.under.await("the lease " + c.sync.Namespace + "/" + inventoryName(c.sync))()
	for {
		held, err := c.take(ctx, holder, &waited)
		if err != nil {
			return nil, nil, err
		}
		if held != nil {
			l := &lock{cluster: c, held: held, stopped: make(chan struct{})}
			working, end := context.WithCancelCause(ctx)
			renewing, stop := context.WithCancel(context.WithoutCancel(ctx)) // renew also while the outcomes are stored
			l.end, l.stop = end, stop
			go l.renew(renewing)
			return l, working, nil
		}
		if time.Since(waited.since) > patience {
			return nil, nil, fmt.Errorf("the sync %s is being applied by another process: the lease %s/%s is held by %s", c.sync, c.sync.Namespace, inventoryName(c.sync), waited.by())
		}
		if sleep(ctx, min(time.Second, c.options.LeaseDuration/4)); ctx.Err() != nil {
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

// expired reports whether the lease is free: it has no holder, the caller holds it, or the holder is dead. A holder is dead if it
// has not renewed the lease for its whole duration while we watched, or for ten times the duration by any clock.
func (w *watchedLease) expired() bool {
	spec := w.lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || *spec.HolderIdentity == w.holder || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return true
	}
	duration := time.Duration(*spec.LeaseDurationSeconds) * time.Second
	return time.Since(w.changed) > duration || time.Since(spec.RenewTime.Time) > 10*duration
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
func (c *Cluster) take(ctx context.Context, holder string, w *watchedLease) (*coordination.Lease, error) {
	leases := c.leases.Leases(c.sync.Namespace)
	name := inventoryName(c.sync)
	now, err := leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		now = &coordination.Lease{}
		now.Namespace, now.Name = c.sync.Namespace, name
		return c.write(ctx, now, holder)
	}
	if err != nil {
		return nil, c.explain(err, "get", "the lease "+c.sync.Namespace+"/"+name)
	}
	w.saw(now)
	if !w.expired() {
		return nil, nil
	}
	return c.write(ctx, now, holder)
}

// write acquires a lease. It returns nil if another process was faster.
func (c *Cluster) write(ctx context.Context, l *coordination.Lease, holder string) (*coordination.Lease, error) {
	leases := c.leases.Leases(l.Namespace)
	at := metav1.NowMicro()
	// Rounded up, so that other processes do not take us for dead too early.
	seconds := int32(math.Ceil(min(c.options.LeaseDuration.Seconds(), math.MaxInt32)))
	l.Spec = coordination.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &at, RenewTime: &at}
	var written *coordination.Lease
	err := retry(ctx, func() (err error) {
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
	return written, c.explain(err, "write", "the lease "+l.Namespace+"/"+l.Name)
}

// renew renews the lease until it is stopped. It ends the work if the renewal fails for too long.
func (l *lock) renew(ctx context.Context) {
	defer close(l.stopped)
	duration := l.cluster.options.LeaseDuration
	renewed := time.Now()
	for {
		if sleep(ctx, duration/4); ctx.Err() != nil {
			return
		}
		next := l.held.DeepCopy()
		at := metav1.NowMicro()
		next.Spec.RenewTime = &at
		asking, cancel := context.WithTimeout(ctx, duration/4)
		written, err := l.cluster.leases.Leases(next.Namespace).Update(asking, next, metav1.UpdateOptions{FieldManager: inventory.Manager})
		cancel()
		switch {
		case err == nil:
			l.held, renewed = written, time.Now()
		case ctx.Err() != nil:
			return
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err) || time.Since(renewed) > duration*3/4:
			l.end(errLost)
			return
		}
	}
}

// drop deletes the lease instead of releasing it, and ends the context of the work.
func (l *lock) drop(ctx context.Context) error {
	var err error
	l.given.Do(func() {
		l.stop()
		<-l.stopped
		l.end(nil)
		err = retry(ctx, func() error {
			return l.cluster.leases.Leases(l.held.Namespace).Delete(ctx, l.held.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.held.UID}})
		})
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return l.cluster.explain(err, "delete", "the lease "+l.held.Namespace+"/"+l.held.Name)
}

// release releases the lease, once. A failure is ignored: the lease expires, and the next pass of this process can take it
// immediately.
func (l *lock) release(ctx context.Context) {
	l.given.Do(func() {
		l.stop()
		<-l.stopped
		l.end(nil)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		free := l.held.DeepCopy()
		nobody := ""
		free.Spec.HolderIdentity = &nobody
		_ = retry(ctx, func() error {
			_, err := l.cluster.leases.Leases(free.Namespace).Update(ctx, free, metav1.UpdateOptions{FieldManager: inventory.Manager})
			return err
		})
	})
}

// identity returns a unique name for this process that shows where it runs.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:8])
}
