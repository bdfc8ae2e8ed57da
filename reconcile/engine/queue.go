package engine

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Priority orders the tasks that wait for a worker.
type Priority int

// The priorities of passes. A pass that goes on after a wait may hold a lease, and comes first.
const (
	Regular Priority = 0   // after an interval
	Prompt  Priority = 50  // another writer or another sync caused it
	Asked   Priority = 100 // a person did: with a commit, or by starting the process
	resumed Priority = 1000
)

// A Queue runs the tasks of a process, the most urgent first. Its workers exist while there are tasks. See ADR 90 for what it takes from
// controller-runtime, and what it does not.
type Queue struct {
	workers int

	mu    sync.Mutex
	tasks int
	items items  // nil without tasks
	end   func() // ends the workers
}

type items = priorityqueue.PriorityQueue[*Task]

// NewQueue returns a Queue with a number of workers.
func NewQueue(workers int) *Queue { return &Queue{workers: workers} }

// enter adds a task, and starts the workers for the first one.
func (q *Queue) enter() items {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tasks++; q.tasks == 1 {
		q.items, q.end = work(q.workers)
	}
	return q.items
}

// leave removes a task. The last one ends the workers.
func (q *Queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tasks--; q.tasks == 0 {
		q.end()
	}
}

// work starts workers. They never return an error or a result: a run adds its task to the queue itself, so that each priority and time is
// the one that was decided last.
func work(workers int) (all items, end func()) {
	const name = "passes"
	all = priorityqueue.New(name, func(o *priorityqueue.Opts[*Task]) { o.Log = logr.Discard() })
	one, err := controller.NewTypedUnmanaged(name, controller.TypedOptions[*Task]{
		Reconciler: reconcile.TypedFunc[*Task](func(_ context.Context, t *Task) (reconcile.Result, error) {
			t.attend() //nolint:contextcheck // the context of a worker ends with the process at once
			return reconcile.Result{}, nil
		}),
		MaxConcurrentReconciles: workers, SkipNameValidation: new(true),
		LogConstructor: func(**Task) logr.Logger { return logr.Discard() },
		NewQueue: func(string, workqueue.TypedRateLimiter[*Task]) workqueue.TypedRateLimitingInterface[*Task] {
			return all
		},
	})
	if err != nil {
		panic(err) // it has a name and a reconciler
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = one.Start(ctx) // it has no sources that could fail
	}()
	return all, func() {
		cancel()
		<-ended
	}
}

// add makes a worker attend to the task after a time. The earliest time counts until a worker does.
func (t *Task) add(after time.Duration, priority Priority) {
	t.items.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: new(int(priority))}, t)
}
