// Package cluster reads and writes a cluster: it observes the objects that a commit wants or a sync owns, answers the questions
// of guards, and carries out plans. It decides nothing; package plan does.
//
//	Observe  inventory ─► discovery ─► metadata lists ─► dry runs of what may have moved
//	Apply    lease ─► inventory unmoved? ─► intent ─► tiers ─► settled ─► wait
package cluster

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

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
	Shares           *Shares       // what this Cluster shares with others of the same configuration; nil shares with none
	Progress         func(Event)   // receives the progress of Apply and Observe, one call at a time; may be nil
}

// An Event is the progress of a phase, for display.
type Event struct {
	Phase  string // "observe", "apply", "wait"
	Done   int
	Total  int
	Object manifest.ID // the object that was just processed; zero if there was none
}

func (o Options) withDefaults() Options {
	if o.Concurrency <= 0 {
		o.Concurrency = 8
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = 90 * time.Second
	}
	if o.LeaseDuration <= 0 {
		o.LeaseDuration = 60 * time.Second
	}
	if o.AnswerTime <= 0 {
		o.AnswerTime = 75 * time.Second // the default request timeout of an API server is one minute
	}
	if o.DefaultNamespace == "" {
		o.DefaultNamespace = "default"
	}
	return o
}

// A Cluster is one cluster as one sync sees it. It may be used by one pass at a time.
type Cluster struct {
	sync     inventory.Sync
	options  Options
	config   *rest.Config
	http     *http.Client
	throttle *throttle // of the API server

	discovery discovery.DiscoveryInterfaceWithContext
	metadata  metadata.Interface // for requests that need no bodies: lists, writes
	objects   dynamic.Interface  // for requests with bodies
	core      corev1.CoreV1Interface
	leases    coordinationv1.LeasesGetter

	holder   string // identity of this process in the lease
	key      digestKey
	checks   schedule                     // schedule of checks for objects that look unchanged
	surface  *surface                     // result of the last discovery
	owned    *inventory.Inventory         // the inventory that the pass uses, in the cluster's spelling; nil before it is read
	stored   *core.ConfigMap              // the inventory as it was last read or written
	siblings map[string]map[string]string // the values of siblings of stored, by name
	packages map[manifest.ID]comparison   // planned updates of packages, with the definitions that they replace
	waited   map[manifest.ID]string       // objects that did not become ready in time, with the commit for which a pass waited
	watched  *watchedLease                // the lease as the last passes saw it; nil before the first
	shared   *shared                      // with other Clusters of the same configuration
	leave    func()                       // ends that
	under    *underway                    // requests and other things that the pass waits for
	progress sync.Mutex
}

// New returns a Cluster for a configuration. It sends no request. The API server limits us by priority and fairness, so there is no
// client-side rate limit.
func New(config *rest.Config, of inventory.Sync, options Options) (*Cluster, error) {
	shares := cmp.Or(options.Shares, &Shares{})
	all, leave, err := shares.enter(config, of, options.AnswerTime)
	if err != nil {
		return nil, err
	}
	c, err := connect(config, of, options, all.reader.throttle)
	if err != nil {
		leave()
		return nil, err
	}
	c.shared, c.leave = all, leave
	return c, nil
}

// Close makes the others of the same configuration forget the Cluster. It may be called more than once, after Watch has returned.
func (c *Cluster) Close() { c.leave() }

// connect returns a Cluster that shares nothing, and so cannot watch.
func connect(config *rest.Config, of inventory.Sync, options Options, through *throttle) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1
	config.UserAgent = "headgate/" + version()
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandler = rest.NoWarnings{} // the default writes to standard error
	}
	options = options.withDefaults()
	under := &underway{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return deadlineTransport{next: next, through: through, within: options.AnswerTime, under: under}
	})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	client.CheckRedirect = sameServer
	c := &Cluster{sync: of, options: options, config: config, http: client, throttle: through, holder: options.Term.holder(identity()), under: under, waited: map[manifest.ID]string{}}
	c.checks.every = options.FullCheck
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	writing := *client
	writing.Transport = fenced{client.Transport}
	if c.metadata, err = metadata.NewForConfigAndClient(config, &writing); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if c.objects, err = dynamic.NewForConfigAndClient(config, &writing); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if c.core, err = corev1.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if c.leases, err = coordinationv1.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return c, nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
