package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/fleet"
	"headgate.dev/headgate/reconcile/target"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// A subject is a Sync object while this replica leads: what it asks for, and the status that its passes have.
type subject struct {
	of   *controller
	uid  types.UID
	at   destination // where its passes apply; only Reconcile uses it, and ends
	ends time.Time   // when Reconcile first saw that the object is being deleted

	mu        sync.Mutex
	object    *v1alpha1.Sync  // as it was last seen
	status    v1alpha1.Status // after the last event
	requested string          // the request for a pass that the current pass serves
	sent      v1alpha1.Status // what the API server accepted last
	answered  v1alpha1.Status // what it kept of that: an older CRD has fewer fields
	writes    bool            // write runs
	gone      bool            // there is no object any more that could show a status
	waits     bool            // the last fetch found a dependency that is not far enough
	lastEvent string          // reason and message of the last Event
	unwatched unwatched
	passes    int // that ended

	writing sync.Mutex // one write at a time
}

// The limits of a write of a status.
const (
	answerTime = 5 * time.Second // of the API server
	lastWords  = 2 * time.Second // the same, once the process ends
	firstRetry = time.Second     // doubles up to mostRetry
	mostRetry  = time.Minute
	mostMoved  = 5 // conflicts in a row, before a write waits
)

func newSubject(of *controller, s *v1alpha1.Sync) *subject {
	return &subject{of: of, uid: s.UID, object: s, status: *s.Status.DeepCopy(), unwatched: unwatched{}}
}

// see records the object as it is now. It reports whether to make a pass soon: for another approval or another request in its annotations,
// or because it waits for a dependency.
func (j *subject) see(s *v1alpha1.Sync) (asked bool) {
	j.mu.Lock()
	defer func(before *v1alpha1.Sync) { j.of.Around.Audit.Note(fleet.Decided(before, s)...) }(j.object)
	defer j.mu.Unlock()
	asked = j.waits // its dependency may be far enough now
	before := j.object
	j.object = s
	if older(s, before) { // the cache is behind a write of this process
		j.object = s.DeepCopy()
		j.object.ResourceVersion, j.object.Status = before.ResourceVersion, before.Status
	}
	for _, annotation := range []string{v1alpha1.ApproveAnnotation, v1alpha1.RequestedAtAnnotation} {
		asked = asked || before.Annotations[annotation] != s.Annotations[annotation]
	}
	return asked
}

// older reports whether an object was read before another state of it.
func older(s, than *v1alpha1.Sync) bool {
	order, err := resourceversion.CompareResourceVersion(s.ResourceVersion, than.ResourceVersion)
	return err == nil && order < 0
}

// mend writes the status if the object has another one: a person has edited it.
func (j *subject) mend() {
	j.mu.Lock()
	written := j.isWritten()
	j.mu.Unlock()
	if !written {
		j.write()
	}
}

// knows reports whether the status of an object is one that this process wrote, or will replace.
func (j *subject) knows(s *v1alpha1.Sync) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	order, err := resourceversion.CompareResourceVersion(s.ResourceVersion, j.object.ResourceVersion)
	seen := err == nil && order <= 0
	return j.gone || seen || equality.Semantic.DeepEqual(s.Status, j.status) || equality.Semantic.DeepEqual(s.Status, j.answered)
}

// edited matches objects whose status someone else wrote.
func (c *controller) edited() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, is := e.ObjectOld.(*v1alpha1.Sync)
			after, also := e.ObjectNew.(*v1alpha1.Sync)
			if !is || !also || equality.Semantic.DeepEqual(before.Status, after.Status) {
				return false
			}
			c.mu.Lock()
			one := c.subjects[target.NameOf(*after)]
			c.mu.Unlock()
			return one != nil && one.uid == after.UID && !one.knows(after)
		},
	}
}

// hear takes an event of the passes over a generation of the object into the status.
func (j *subject) hear(generation int64, e reconcile.Event) {
	j.mu.Lock()
	if e.Kind == reconcile.Began {
		j.requested = j.object.Annotations[v1alpha1.RequestedAtAnnotation]
	}
	next, changed := after(j.status, generation, j.object.Annotations[v1alpha1.ApproveAnnotation], e)
	if e.Kind == reconcile.Passed && next.LastHandledReconcileAt != j.requested {
		next.LastHandledReconcileAt, changed = j.requested, true
	}
	if e.Kind == reconcile.Passed {
		j.passes++
	}
	next = j.unwatched.after(next, generation, e, j.passes)
	before := j.status
	changed = changed || !equality.Semantic.DeepEqual(next, before)
	j.status = next
	changed = j.setMoves() || changed
	j.mu.Unlock()
	if changed {
		j.tell(before, next, e.Report.Done())
		j.write()
	}
	switch e.Kind {
	case reconcile.Passed:
		j.tellRestarts(e.Report)
	case reconcile.PublishFailed:
		j.event(core.EventTypeWarning, v1alpha1.EventStatusNotPosted, e.Err.Error())
	default:
	}
}

// anew forgets what the passes before could not watch.
func (j *subject) anew() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unwatched, j.passes = unwatched{}, 0
}

// stall records why the object does not run.
func (j *subject) stall(generation int64, why *refusal) {
	j.mu.Lock()
	before := j.status
	next := stalled(before, generation, why.reason, why.Error())
	j.status = next
	j.mu.Unlock()
	j.tell(before, next, "")
	j.write()
}

// write writes the status in the background, until it is written or the process ends.
func (j *subject) write() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.writes {
		return
	}
	j.writes = true
	go func() {
		for pause := firstRetry; ; pause = min(2*pause, mostRetry) {
			err := engine.Caught("write of a status", func() error { return j.writeOnce(j.of.running, answerTime) })
			j.mu.Lock()
			if err == nil && j.isWritten() || j.of.running.Err() != nil {
				j.writes = false
				j.mu.Unlock()
				return
			}
			j.mu.Unlock()
			if err == nil {
				pause = firstRetry / 2 // it changed meanwhile
				continue
			}
			slog.Warn("the status of a Sync could not be written", "sync", j.name(), "error", err)
			select {
			case <-j.of.running.Done():
			case <-time.After(pause):
			}
		}
	}()
}

// flush writes the status if it is not written yet. It is called once no pass runs any more.
func (j *subject) flush() {
	if err := j.writeOnce(context.WithoutCancel(j.of.running), lastWords); err != nil {
		slog.Warn("the status of a Sync could not be written", "sync", j.name(), "error", err)
	}
}

// isWritten reports whether the object has the status, or all of it that its CRD knows, or is gone. Its lock is held.
func (j *subject) isWritten() bool {
	kept := equality.Semantic.DeepEqual(j.status, j.sent) && equality.Semantic.DeepEqual(j.object.Status, j.answered)
	return j.gone || kept || len(difference(j.object, j.status)) == 0
}

func (j *subject) generation() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.object.Generation
}

func (j *subject) name() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.object.Namespace + "/" + j.object.Name
}

// writeOnce writes the status as it is now, unless the object has it. If someone else has changed the object, it reads it again.
func (j *subject) writeOnce(ctx context.Context, within time.Duration) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for try := 0; ; try++ {
		j.mu.Lock()
		object, status := j.object.DeepCopy(), *j.status.DeepCopy()
		done := j.isWritten()
		j.mu.Unlock()
		if done {
			return nil
		}
		if err := j.of.checkCRD(ctx); err != nil {
			return err
		}
		with := object.DeepCopy()
		with.Status = status
		err := j.of.client.Status().Patch(ctx, with, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldOwner))
		switch {
		case err == nil:
			j.wrote(with)
			j.mu.Lock()
			j.sent, j.answered = status, with.Status
			j.mu.Unlock()
			return nil
		case apierrors.IsNotFound(err):
			j.lost()
			return nil
		case !apierrors.IsConflict(err) || try == mostMoved:
			return err
		}
		now := &v1alpha1.Sync{}
		err = j.of.direct.Get(ctx, client.ObjectKeyFromObject(object), now)
		switch {
		case apierrors.IsNotFound(err), err == nil && now.UID != j.uid: // or another object has its name
			j.lost()
			return nil
		case err != nil:
			return err
		}
		j.wrote(now)
	}
}

// lost records that the object is gone.
func (j *subject) lost() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.gone = true
}

// wrote records the status and the version that the API server has. What the object asks for is recorded only by see, which makes the
// pass.
func (j *subject) wrote(now *v1alpha1.Sync) {
	j.mu.Lock()
	defer j.mu.Unlock()
	object := j.object.DeepCopy()
	object.ResourceVersion, object.Status = now.ResourceVersion, now.Status
	j.object = object
}

// difference returns the patch from the status of an object to another one; nil if they are the same.
func difference(object *v1alpha1.Sync, status v1alpha1.Status) []byte {
	with := object.DeepCopy()
	with.Status = status
	patch, err := client.MergeFrom(object).Data(with)
	if err != nil || string(patch) == "{}" {
		return nil
	}
	return patch
}
