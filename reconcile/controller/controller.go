// Package controller runs the Sync objects of a cluster, as 'headgate run' runs those of files. Package fleet runs them, and this package
// decides which run, as whom, and what their status shows.
//
//	Sync objects ─► Reconcile ─► fleet ─► passes ─► events ─► status, Events of Kubernetes
//
// Replicas elect a leader. Only the leader makes passes and writes.
package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/audit"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/fleet"
	"headgate.dev/headgate/reconcile/intern"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/metrics"
	"headgate.dev/headgate/reconcile/target"

	admission "k8s.io/api/admissionregistration/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Options configure a controller.
type Options struct {
	Config *rest.Config // the controller's own identity
	// Around holds what the passes of all Syncs share. The controller sets the cluster, the approvals and the events of each.
	Around target.Surroundings
	// Wire makes a target of a Sync. It sends no request.
	Wire    func(v1alpha1.Sync, target.Surroundings) (*target.Target, error)
	Metrics *metrics.Metrics

	Home      string          // the controller's own namespace, which contains the lease of the leader
	Namespace string          // the only namespace whose Syncs run; "" for all
	Pprof     string          // the address for profiles; "" for none
	Selector  labels.Selector // the Sync objects of this shard; nil for all
	Endpoints Endpoints       // of the webhooks
	// CRD is the CRD of a Sync, as this version has it.
	CRD *unstructured.Unstructured
	// Waits is called with what the replica waits for before it is ready, and with "" once it is; may be nil.
	Waits func(string)

	ServiceAccount string // of Syncs that name none; "" if each has to name one
	Ceilings       Ceilings
	// NoCrossNamespaceRefs refuses a Sync that names a source of another namespace.
	NoCrossNamespaceRefs bool
	Protection           Protection // of approvals on Sync objects
}

// The lease of the leader. A leader that is killed is replaced after leaseDuration. One that ends gives the lease back, and others look
// every retryPeriod.
const (
	leaseName     = "headgate-controller"
	leaseDuration = 12 * time.Second
	renewDeadline = 9 * time.Second
	retryPeriod   = time.Second

	// grace is how long passes may go on after SIGTERM. Together with two retryPeriods, it is less than 5 seconds.
	grace      = 2 * time.Second
	mostEvents = 256 // Events of Kubernetes that wait
	// workers is the number of Syncs that start or stop at the same time. A Sync that stops waits for the end of its pass.
	workers = 20
)

// fieldOwner is the field manager of what the controller writes into Sync objects.
const fieldOwner = "headgate-controller"

// A controller runs Sync objects while it leads.
type controller struct {
	Options

	client client.Client // reads from the cache
	direct client.Reader // reads from the API server
	fleet  fleet.Fleet

	sources sources
	crd     *crdCheck

	leads   chan struct{}           // closed once running is set
	running context.Context         //nolint:containedctx // done when the term of this leader ends, and Syncs run longer than any request
	quit    context.CancelCauseFunc // ends the term

	own    string // the user name of the controller
	events chan *core.Event

	identities intern.Map[string, rest.Config] // by user name
	remotes    intern.Map[remote, reached]
	here       *reached // the cluster of the controller

	mu       sync.Mutex
	subjects map[inventory.Sync]*subject
}

// Run runs the Sync objects of a cluster until ctx is done, or until another replica leads. It returns once their passes have ended and
// their statuses are written.
func Run(ctx context.Context, o Options) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), core.AddToScheme(scheme), admission.AddToScheme(scheme), coordination.AddToScheme(scheme)); err != nil {
		return err
	}
	// The API server limits us by priority and fairness. The default of client-go, 5 requests a second, would delay the statuses of many Syncs.
	o.Config.QPS, o.Config.Burst = -1, -1
	crd, err := newCRDCheck(o.Config, o.CRD)
	if err == nil {
		err = crd.wait(ctx, o.waits)
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	o.waits("the Sync objects")
	m, err := manager.New(o.Config, manager.Options{
		Scheme: scheme, Cache: o.caches(),
		LeaderElection: true, LeaderElectionID: o.leaseOf(), LeaderElectionNamespace: o.Home, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(leaseDuration), RenewDeadline: new(renewDeadline), RetryPeriod: new(retryPeriod),
		Metrics: server.Options{BindAddress: "0"}, PprofBindAddress: o.Pprof, // the caller serves the metrics
	})
	if err != nil {
		return err
	}
	if all := o.Around.PullRequests; all != nil {
		all.Shard = strings.TrimPrefix(strings.TrimPrefix(o.leaseOf(), leaseName), "-")
	}
	c := &controller{
		Options: o, client: m.GetClient(), direct: m.GetAPIReader(),
		fleet: fleet.Fleet{Peers: o.Around.Peers, Metrics: o.Metrics}, crd: crd, here: &reached{Config: *o.Config},
		leads: make(chan struct{}), events: make(chan *core.Event, mostEvents), subjects: map[inventory.Sync]*subject{},
	}
	c.sources.changed, c.sources.unwatched = c.sourceChanged, c.sourceUnwatched
	if c.sources.metadata, err = metadata.NewForConfig(o.Config); err != nil {
		return err
	}
	if c.own, err = ownName(ctx, o.Config); err != nil {
		return err
	}
	if o.isShard() {
		o.Around.Peers.Tell = c.tell
	}
	if err := errors.Join(m.GetFieldIndexer().IndexField(ctx, &v1alpha1.Sync{}, dependsOn, dependencies), c.register(m)); err != nil {
		return err
	}
	return m.Start(ctx)
}

// register makes a manager call the controller.
func (c *controller) register(m manager.Manager) error {
	err := builder.ControllerManagedBy(m).Named("sync").
		For(&v1alpha1.Sync{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, specChanged(), predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, c.edited(), c.ofOthers()))).
		Watches(&v1alpha1.Sync{}, handler.EnqueueRequestsFromMapFunc(c.dependants), builder.WithPredicates(progressed())).
		WithOptions(runtimecontroller.Options{MaxConcurrentReconciles: workers, SkipNameValidation: new(true)}).
		Complete(c)
	if err != nil {
		return err
	}
	return errors.Join(m.Add(manager.RunnableFunc(c.lead)), m.Add(always(func(context.Context) error {
		c.waits("") // other runnables start once the caches are filled
		return nil
	})))
}

// waits tells what the replica waits for.
func (o Options) waits(what string) {
	if o.Waits != nil {
		o.Waits(what)
	}
}

// specChanged matches objects with another spec of the same generation: the API server has another CRD.
func specChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, is := e.ObjectOld.(*v1alpha1.Sync)
			after, also := e.ObjectNew.(*v1alpha1.Sync)
			return is && also && !equality.Semantic.DeepEqual(before.Spec, after.Spec)
		},
	}
}

// An always is what every replica runs, also one that does not lead.
type always func(context.Context) error

func (a always) Start(ctx context.Context) error { return a(ctx) }

// NeedLeaderElection reports whether only the leader runs it.
func (always) NeedLeaderElection() bool { return false }

// lead lets Syncs run until ctx is done. It returns once their passes have ended and their statuses are written: until then, no other
// replica may lead.
func (c *controller) lead(ctx context.Context) error {
	ctx, c.quit = context.WithCancelCause(ctx)
	defer c.quit(nil)
	lease := &coordination.Lease{}
	if err := c.direct.Get(ctx, client.ObjectKey{Namespace: c.Home, Name: c.leaseOf()}, lease); err != nil {
		return err
	}
	c.Around.Term = cluster.Term{Election: string(lease.UID), Number: int(ptr.Deref(lease.Spec.LeaseTransitions, 0))}
	slog.Info("this replica leads", "term", c.Around.Term.Number)
	c.running = ctx
	c.Around.Audit.Note(audit.Entry{Event: audit.Configured, Settings: c.Ceilings.settings()})
	if err := c.introduce(ctx); err != nil {
		return err
	}
	close(c.leads)
	if c.Endpoints.Slice != "" {
		c.fleet.Go(func() { c.enterAddress(ctx) })
	}
	c.createEvents(ctx)
	err := c.fleet.Wait()
	c.flush()
	slog.Info("ended")
	if incomplete, is := errors.AsType[*incompleteError](context.Cause(ctx)); is {
		return incomplete
	}
	return err
}

// introduce makes all Syncs known to each other before the first pass, because a commit may have moved an object before this replica led.
func (c *controller) introduce(ctx context.Context) error {
	var all v1alpha1.SyncList
	if err := c.client.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		if s := &all.Items[i]; c.runs(s) {
			c.subject(s)
		} else {
			c.meet(s)
		}
	}
	return nil
}

// join makes a Sync that does not run known to the others: those of its branch delete nothing that it may declare, and nothing that they say
// together is green without it. stalled is why it does not run; nil if it soon will.
func (c *controller) join(s *v1alpha1.Sync, stalled error) {
	wanted := *s.DeepCopy()
	wanted.Default()
	c.Around.Expect(wanted, stalled)
	if member, moves := target.MemberOf(wanted); moves {
		c.Around.Peers.Join(target.NameOf(wanted), member)
	}
	if stalled != nil {
		c.Around.Peers.Stalled(target.NameOf(wanted), stalled)
	}
}

// subject returns the state of a Sync object. Another object of the same name has a state of its own.
func (c *controller) subject(s *v1alpha1.Sync) *subject {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := target.NameOf(*s)
	one := c.subjects[name]
	if one == nil || one.uid != s.UID {
		one = newSubject(c, s)
		c.subjects[name] = one
		c.join(s, nil)
		defer c.Around.Audit.Note(fleet.Decided(nil, s)...)
	}
	return one
}

// forget stops a Sync that this controller does not run any more. Its objects stay in the cluster.
func (c *controller) forget(name inventory.Sync) {
	c.fleet.Remove(name)
	c.Around.Forget(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.subjects, name)
}

// flush writes the statuses that are not written yet.
func (c *controller) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all sync.WaitGroup
	for _, one := range c.subjects {
		all.Go(one.flush)
	}
	all.Wait()
}

// A refusal is why a Sync does not run until a person changes something.
type refusal struct {
	reason string // of the condition Stalled
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refuse(reason, format string, args ...any) error {
	return &refusal{reason, fmt.Errorf(format, args...)}
}
