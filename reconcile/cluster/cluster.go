// Package cluster reads and writes a cluster: it observes the objects that a commit wants or a sync owns, answers the questions
// of guards, and carries out plans. It decides nothing; package plan does. The work is done in the packages below it:
//
//	api      sends requests and explains their errors     observe  reads objects, and tries what an apply would change
//	store    keeps the inventory and the lease            write    carries out plans
//	count    answers questions of guards                  watch    reports what moved
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/cluster/count"
	"headgate.dev/headgate/reconcile/cluster/observe"
	"headgate.dev/headgate/reconcile/cluster/store"
	"headgate.dev/headgate/reconcile/cluster/watch"
	"headgate.dev/headgate/reconcile/cluster/write"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/health"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/preflight"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"k8s.io/client-go/rest"
)

// An Event is the progress of a phase, for display.
type Event = api.Event

// A Term is the time in which one process leads others.
type Term = store.Term

// Shares lets the syncs of one process share their watches.
type Shares = watch.Shares

// Options configures a Cluster. The zero value selects the defaults.
type Options struct {
	Concurrency      int           // maximum number of parallel requests; default 8
	Timeout          time.Duration // how long applied objects may take to become ready; default 5 minutes
	NoWait           bool          // do not wait for readiness, except where a later step needs it
	TryCreates       bool          // also dry-run missing objects, for a diff
	LockTimeout      time.Duration // how long to wait for another writer; default 90 seconds
	AnswerTime       time.Duration // how long the API server may take to answer; default 75 seconds, and four times that for a list
	LeaseDuration    time.Duration // how long after its last renewal a writer counts as dead; default 60 seconds
	DefaultNamespace string        // for namespaced objects without a namespace; default "default"
	FullCheck        time.Duration // interval within which every object is dry-run, even if it looks unchanged; 0 means never
	Terms            facts.Terms   // which fields and objects to take from other tools, and which to leave to them
	Term             Term          // in which this process leads others; the zero value if nobody is elected
	Health           health.Checks // when objects are ready, in place of the rules for their kinds
	Shares           *Shares       // what this Cluster shares with others of the same configuration; nil shares with none
	Progress         func(Event)   // receives the progress of Apply and Observe, one call at a time; may be nil
}

// Verb returns the verb of a request to an API server: GET, LIST, WATCH, PATCH, POST, PUT or DELETE. Dry runs have the prefix "DRY-RUN ".
func Verb(req *http.Request) string { return api.Verb(req) }

// client returns the options of requests.
func (o Options) client(shares *Shares) api.Options {
	return api.Options{
		Concurrency: o.Concurrency, AnswerTime: o.AnswerTime, DefaultNamespace: o.DefaultNamespace, Progress: o.Progress, Throttles: shares.Limits(),
	}
}

// A Cluster is one cluster as one sync sees it. It may be used by one pass at a time.
type Cluster struct {
	client *api.Client
	store  *store.Store
	count  *count.Counter
	reader *observe.Reader
	writer *write.Writer
	watch  *watch.Watcher
	leave  func() // ends what is shared with other Clusters
}

// New returns a Cluster for a configuration. It sends no request.
func New(config *rest.Config, of inventory.Sync, options Options) (*Cluster, error) {
	shares := cmp.Or(options.Shares, &Shares{})
	all, leave, err := shares.Enter(config, of, options.AnswerTime)
	if err != nil {
		return nil, err
	}
	how := options.client(shares)
	how.Discovered = all.Discovered
	client, err := api.Connect(config, of, how)
	if err != nil {
		leave()
		return nil, err
	}
	c := assembled(client, options)
	c.writer = write.New(c.store, c.count, all.CRDs, write.Options{
		Timeout: options.Timeout, NoWait: options.NoWait, LockTimeout: options.LockTimeout, Ignore: options.Terms.Ignore,
	})
	c.watch, c.leave = watch.New(c.store, all), leave
	return c, nil
}

// assembled returns a Cluster that only reads.
func assembled(client *api.Client, options Options) *Cluster {
	store := store.New(client, options.LeaseDuration, options.Term)
	count := count.New(client, store)
	count.Health = options.Health
	return &Cluster{
		client: client, store: store, count: count,
		reader: observe.New(store, count, observe.Options{Terms: options.Terms, TryCreates: options.TryCreates, FullCheck: options.FullCheck}),
	}
}

// Close makes the others of the same configuration forget the Cluster. It may be called more than once, after Watch has returned.
func (c *Cluster) Close() { c.leave() }

// Observe returns the live state of wanted and owned objects. If nothing changed, it costs a request for the inventory,
// two for discovery and one for every kind.
func (c *Cluster) Observe(ctx context.Context, want render.Desired) (facts.Observed, error) {
	return c.reader.Observe(ctx, want)
}

// Answer answers questions of guards. A failed count is also an answer; an error means that no question can be answered.
func (c *Cluster) Answer(ctx context.Context, questions []question.Any) (question.Answers, error) {
	return c.count.Answer(ctx, questions)
}

// Apply carries out a plan, and nothing else. A problem with one object is its outcome. An error means that the pass ended early;
// the outcomes are what it did until then. plan.ErrMoved means that a new plan is needed.
func (c *Cluster) Apply(ctx context.Context, p plan.Plan) ([]plan.Outcome, error) {
	return c.writer.Apply(ctx, p)
}

// Watch reports the objects of the inventory that changed since our last write, with their current marks, and again after every
// change, until ctx is done. Passes may run at the same time. Watch returns at once, and wait returns once nothing of it goes on.
func (c *Cluster) Watch(ctx context.Context, tell func(moved map[manifest.ID]string), trouble func(what string, err error)) (wait func()) {
	return c.watch.Watch(ctx, tell, trouble)
}

// Inventory returns the sync's inventory. A missing one is not an error: its ResourceVersion is empty.
func (c *Cluster) Inventory(ctx context.Context) (inventory.Inventory, error) {
	return c.store.Inventory(ctx)
}

// Record stores the result of a pass in the inventory's history if it is new. Without an inventory, it does nothing.
func (c *Cluster) Record(ctx context.Context, p inventory.Past) error { return c.store.Record(ctx, p) }

// Owned returns the objects in the inventory of another sync. It returns none without the right to read it.
func (c *Cluster) Owned(ctx context.Context, of inventory.Sync) ([]manifest.ID, error) {
	return c.store.Owned(ctx, of)
}

// Syncs returns the syncs that have an inventory in the cluster, sorted by namespace and name.
func (c *Cluster) Syncs(ctx context.Context) ([]inventory.Sync, error) { return c.store.Syncs(ctx) }

// Orphaned returns the objects whose last sync is gone. It costs one list for every kind.
func (c *Cluster) Orphaned(ctx context.Context) (inventory.Orphans, error) {
	return c.store.Orphaned(ctx)
}

// Lease returns the lease of the sync.
func (c *Cluster) Lease(ctx context.Context) (preflight.Lease, error) { return c.store.Lease(ctx) }

// Owner returns the owner of CRDs: the one in the inventory or, without one, Crossplane if its API is served. It returns "" if that
// is not known.
func (c *Cluster) Owner(ctx context.Context) (render.Owner, error) { return c.reader.Owner(ctx) }

// Definitions returns the definitions in the cluster, for a commit that has none of its own.
func (c *Cluster) Definitions(ctx context.Context) ([]*catalogue.Definition, error) {
	return c.reader.Definitions(ctx)
}

// Policies returns the policies of the cluster by name, or nil without Crossplane.
func (c *Cluster) Policies(ctx context.Context) (map[string]crossplane.LivePolicy, error) {
	return c.reader.Policies(ctx)
}

// Packages returns the packages that Crossplane has installed, with one request, or nil without Crossplane.
func (c *Cluster) Packages(ctx context.Context) ([]crossplane.Installed, error) {
	return c.reader.Packages(ctx)
}

// AppliedImages returns the images that the sync applied, with one request; see inventory.Record.
func (c *Cluster) AppliedImages(ctx context.Context) ([]packages.Locked, error) {
	return c.reader.AppliedImages(ctx)
}

// ImageConfigs returns the ImageConfigs of the cluster, or nil without Crossplane.
func (c *Cluster) ImageConfigs(ctx context.Context) ([]packages.LiveConfig, error) {
	return c.reader.ImageConfigs(ctx)
}

// Restart restarts the pods of a Deployment, as kubectl rollout restart does.
func (c *Cluster) Restart(ctx context.Context, namespace, name string) error {
	return c.writer.Restart(ctx, namespace, name)
}

// Secret reads one Secret in the namespace of the sync. It may be called while a pass runs.
func (c *Cluster) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	return c.client.Secret(ctx, name)
}

// Secrets returns how Secrets in the namespace of a sync are read from another cluster than the one that it applies to. It sends no request.
func Secrets(config *rest.Config, of inventory.Sync) (func(ctx context.Context, name string) (map[string][]byte, error), error) {
	c, err := api.Connect(config, of, api.Options{})
	if err != nil {
		return nil, err
	}
	return c.Secret, nil
}

// Ready waits until the API server answers, at most for the time of an answer.
func (c *Cluster) Ready(ctx context.Context) error { return c.client.Ready(ctx) }

// WaitsFor returns what the current pass is waiting for; "" if that is not known. It may be called while the pass runs.
func (c *Cluster) WaitsFor() string { return c.client.WaitsFor() }

// A Looker observes a cluster for a sync that never writes. It needs only the rights to get, list and watch, and sends no other
// requests. It keeps its records in memory instead of in an inventory. One pass and one watch may use it at the same time.
type Looker struct {
	*observe.Looker

	watch *watch.Watcher
}

// NewLooker returns a Looker for the cluster of a configuration. It sends no request.
func NewLooker(config *rest.Config, of inventory.Sync, options Options) (*Looker, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodGet {
				return nil, fmt.Errorf("%s was not sent: this sync only looks", req.Method)
			}
			return next.RoundTrip(req)
		})
	})
	shares := cmp.Or(options.Shares, &Shares{})
	client, err := api.Connect(config, of, options.client(shares))
	if err != nil {
		return nil, err
	}
	c := assembled(client, options)
	return &Looker{observe.NewLooker(c.reader), watch.New(c.store, nil)}, nil // it watches also objects without our label, and so shares no watch
}

// Watch reports the wanted objects that changed since their comparison, and again after every change, until ctx is
// done. It calls trouble once for each kind that cannot be watched.
func (l *Looker) Watch(ctx context.Context, tell func(moved map[manifest.ID]string), trouble func(what string, err error)) (wait func()) {
	return l.watch.Everything(ctx, l.News(), l.Marks, tell, trouble)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
