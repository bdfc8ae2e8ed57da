package established

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/cluster/count"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	leastQuiet = 2 * time.Second // how long the watch may show nothing before CRDs are read
	mostQuiet  = 16 * time.Second
	readsAtOne = 50 // the maximum number of CRDs to read each time
)

// A Waiter waits for the CRDs that one pass applies.
type Waiter struct {
	all    *CRDs
	client *api.Client // of the pass

	mu      sync.Mutex
	states  map[string]state // by the name of the CRD
	changed chan struct{}    // closed and replaced whenever the watch shows a state
	last    string           // the CRD that was read last
}

// A state is the last known state of a CRD. The zero value means that nothing is known.
type state struct {
	version string        // resourceVersion
	reason  reason.Reason // why it is not served; none if it is
	lost    bool          // the watch may not show the next state
}

func stateOf(crd *apiextensions.CustomResourceDefinition) state {
	return state{version: crd.ResourceVersion, reason: facts.WhyCRD(count.Unestablished(crd))}
}

// knows reports whether a state is at least as new as a resourceVersion.
func (s state) knows(version string) bool {
	order, err := resourceversion.CompareResourceVersion(s.version, version)
	return s.version != "" && (err != nil || order >= 0)
}

// Leave ends the part of the Waiter in the watch.
func (w *Waiter) Leave() { w.all.remove(w) }

// hear records what the watch shows of a CRD.
func (w *Waiter) hear(name string, now state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, awaited := w.states[name]; !awaited {
		return
	}
	w.states[name] = now
	close(w.changed)
	w.changed = make(chan struct{})
}

// forget records that the watch may not show the next state of any CRD.
func (w *Waiter) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, s := range w.states {
		s.lost = true
		w.states[name] = s
	}
}

// Wait waits until the CRDs that were applied at the given resourceVersions are served, or ctx ends, or none of them has become served
// within the timeout. It returns the CRDs that are not served, each with the reason.
//
// An API server establishes CRDs one after another, so how long all of them take depends on their number: 2,000 take minutes on a busy one.
//
// A write without changes causes no event, a label may be removed, and a watch may be refused. Therefore, Wait also reads CRDs that the watch
// does not show. If that shows nothing new, the API server is busy, so Wait asks it less often.
func (w *Waiter) Wait(ctx context.Context, timeout time.Duration, applied map[string]string, progress func(crd string)) map[string]reason.Reason {
	defer engine.Pause(ctx)()
	left := maps.Clone(applied)
	quiet, end := leastQuiet, time.Now().Add(timeout)
	for ctx.Err() == nil && time.Now().Before(end) {
		before := len(left)
		changed := w.drop(left, progress)
		if len(left) == 0 {
			return nil
		}
		if len(left) < before {
			quiet, end = leastQuiet, time.Now().Add(timeout)
		}
		if w.isQuiet(ctx, min(quiet, time.Until(end)), changed, left) {
			w.look(ctx, left)
			quiet = min(2*quiet, mostQuiet)
		}
	}
	return w.reasons(context.WithoutCancel(ctx), left, progress)
}

// isQuiet waits for a change, and reports whether there is none.
func (w *Waiter) isQuiet(ctx context.Context, within time.Duration, changed <-chan struct{}, left map[string]string) bool {
	defer w.client.Await("CRDs that are not established: " + api.FirstOf(slices.Collect(maps.Keys(left))))()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-time.After(within):
		return true
	}
	return false
}

// drop deletes the served CRDs from left. It returns a channel that is closed on the next change.
func (w *Waiter) drop(left map[string]string, progress func(crd string)) (changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, version := range left {
		if now := w.states[name]; now.knows(version) && now.reason.None() {
			delete(left, name)
			progress(name)
		}
	}
	return w.changed
}

// look reads some of the CRDs that the watch does not show, and others the next time.
func (w *Waiter) look(ctx context.Context, left map[string]string) {
	for _, name := range w.unseen(left) {
		if now, known := w.read(ctx, name); known {
			w.mu.Lock()
			w.states[name], w.last = now, name
			w.mu.Unlock()
		}
	}
}

// unseen returns CRDs to read: after the one that was read last, those that the watch does not show.
func (w *Waiter) unseen(left map[string]string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name, version := range left {
		if now := w.states[name]; now.lost || !now.knows(version) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	i, _ := slices.BinarySearch(names, w.last+"\x00")
	names = slices.Concat(names[i:], names[:i])
	return names[:min(len(names), readsAtOne)]
}

// read reads the state of a CRD.
func (w *Waiter) read(ctx context.Context, name string) (_ state, known bool) {
	u, err := w.client.Read(ctx, plan.CRD(name))
	if apierrors.IsNotFound(err) {
		return state{reason: reason.WasDeleted.With(), lost: true}, true
	}
	if err != nil {
		return state{}, false
	}
	var crd apiextensions.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd); err != nil {
		return state{}, false
	}
	now := stateOf(&crd)
	now.lost = true
	return now, true
}

// reasons returns why CRDs are still not served, according to their last known states.
func (w *Waiter) reasons(ctx context.Context, left map[string]string, progress func(crd string)) map[string]reason.Reason {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	w.look(ctx, left)
	w.drop(left, progress)
	w.mu.Lock()
	defer w.mu.Unlock()
	why := make(map[string]reason.Reason, len(left))
	for name := range left {
		why[name] = w.states[name].reason.Or(reason.ConditionNotReported.With(string(apiextensions.Established)))
	}
	return why
}
