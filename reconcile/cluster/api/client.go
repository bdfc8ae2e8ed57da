// Package api sends the requests of a sync to an API server. It gives each a deadline, bounds and holds back those to a server that is
// busy or away, hides secrets in answers, and explains errors. It also finds the kinds that the server serves, and how to read them.
//
//	request ─► fence (is the lease still held?) ─► slot of the pass ─► throttle ─► deadline ─► redacted answer
package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configures a Client. The zero value selects the defaults.
type Options struct {
	Concurrency      int           // maximum number of parallel requests; default 8
	AnswerTime       time.Duration // how long the API server may take to answer; default 75 seconds, and four times that for a list
	DefaultNamespace string        // for namespaced objects without a namespace; default "default"
	Progress         func(Event)   // receives the progress of a pass, one call at a time; may be nil
	Throttles        *Throttles    // shared with other Clients; nil shares with none
	Discovered       *Discovered   // shared with other Clients of the same configuration; nil shares with none
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
	if o.AnswerTime <= 0 {
		o.AnswerTime = 75 * time.Second // the default request timeout of an API server is one minute
	}
	if o.DefaultNamespace == "" {
		o.DefaultNamespace = "default"
	}
	if o.Throttles == nil {
		o.Throttles = &Throttles{}
	}
	if o.Discovered == nil {
		o.Discovered = &Discovered{}
	}
	return o
}

// A Client sends the requests of one sync. Several goroutines may use it; only its surface belongs to the pass.
type Client struct {
	Sync inventory.Sync

	Concurrency      int    // maximum number of parallel requests
	DefaultNamespace string // for namespaced objects without a namespace

	Discovery discovery.DiscoveryInterfaceWithContext
	Metadata  metadata.Interface // for requests that need no bodies: lists, writes
	Objects   dynamic.Interface  // for requests with bodies
	Core      corev1.CoreV1Interface
	Leases    coordinationv1.LeasesGetter

	Surface *Surface // result of the last discovery of the pass; nil before the first

	config     *rest.Config
	http       *http.Client
	throttle   *throttle // of the API server
	discovered *Discovered
	answerTime time.Duration
	large      chan struct{} // holds a value for each large object that is read or sent
	under      *underway     // requests and other things that the pass waits for
	progress   func(Event)
	telling    sync.Mutex // while progress is called
}

// Connect returns a Client for a configuration. It sends no request. The API server limits us by priority and fairness, so there is no
// client-side rate limit.
func Connect(config *rest.Config, of inventory.Sync, options Options) (*Client, error) {
	options = options.withDefaults()
	through := options.Throttles.of(config)
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1
	config.UserAgent = "headgate/" + Version()
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandler = rest.NoWarnings{} // the default writes to standard error
	}
	under := &underway{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return deadlineTransport{next: next, through: through, within: options.AnswerTime, under: under}
	})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	client.CheckRedirect = sameServer
	c := &Client{
		Sync: of, Concurrency: options.Concurrency, DefaultNamespace: options.DefaultNamespace,
		config: config, http: client, throttle: through, discovered: options.Discovered, answerTime: options.AnswerTime, large: make(chan struct{}, mostLarge), under: under, progress: options.Progress,
	}
	inquires := *client
	inquires.Transport = inquiring{client.Transport}
	if c.Discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, &inquires); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	writing := *client
	writing.Transport = fenced{client.Transport}
	if c.Metadata, err = metadata.NewForConfigAndClient(config, &writing); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if c.Objects, err = dynamic.NewForConfigAndClient(config, &writing); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if c.Core, err = corev1.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if c.Leases, err = coordinationv1.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return c, nil
}

// Of returns a Client for another sync. It only reads what the sync stored, and does not change c, which a pass may be using.
func (c *Client) Of(other inventory.Sync) *Client {
	return &Client{Sync: other, Core: c.Core, config: c.config}
}

// Polling returns a client for the kinds of a mapper, which the libraries of Flux use to read.
func (c *Client) Polling(mapper meta.RESTMapper) (client.Client, error) {
	return client.New(c.config, client.Options{HTTPClient: c.http, Scheme: runtime.NewScheme(), Mapper: mapper})
}

// Await records something that the pass polls for, until the returned function is called.
func (c *Client) Await(what string) (end func()) { return c.under.await(what) }

// Secret reads one Secret in the namespace of the sync. It may be called while a pass runs. Its errors contain nothing from the
// Secret.
func (c *Client) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	s, err := c.Core.Secrets(c.Sync.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, c.Explain(err, "get", "the Secret "+c.Sync.Namespace+"/"+name)
	}
	return s.Data, nil
}

// Version returns the version of this program.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}

// InventoryName returns the name of the inventory and of the lease of a sync.
func InventoryName(s inventory.Sync) string { return render.BookPrefix + s.Name }

// TellOf counts one more object and reports progress.
func (c *Client) TellOf(phase string, done *int, total int, of manifest.ID) {
	c.telling.Lock()
	defer c.telling.Unlock()
	*done++
	if c.progress != nil {
		c.progress(Event{Phase: phase, Done: *done, Total: total, Object: of})
	}
}
