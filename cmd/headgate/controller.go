package main

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"headgate.dev/headgate/examples"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/controller"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/reconcile/metrics"
	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/reconcile/target"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"
)

// controllerFlags holds the flags of controller.
type controllerFlags struct {
	in        clusterFlags
	home      string
	namespace string
	cache     cacheFlags
	trust     trustFlags
	seen      probes
	hooks     listener
	endpoints string
	pprof     string
	plain     network.Plain
	most      int
	account   string
	selector  string
	audit     string
	ceilings  ceilingFlags
	near      bool // no references to other namespaces
}

// ceilingFlags holds the flags that limit what Syncs may ask for.
type ceilingFlags struct {
	activations, prunes            int
	instances, adoption, approvals string
}

func (f *ceilingFlags) addTo(cmd *cobra.Command) {
	counted := v1alpha1.Range{Least: 0, Most: 1_000_000_000}
	addNumber(cmd, &f.activations, "max-activations", 0, counted, "maximum `number` that a Sync may set in maxActivations; 0 is no limit")
	addNumber(cmd, &f.prunes, "max-prunes", 0, counted, "maximum `number` that a Sync may set in maxPrunes; 0 is no limit")
	flags := cmd.Flags()
	flags.StringVar(&f.instances, "instances", "", "the most that a Sync may set in instances: hold or prune (default: no limit)")
	flags.StringVar(&f.adoption, "adoption", "", "the most that a Sync may set in adoption: refuse, if-unowned or adopt (default: no limit)")
	flags.StringVar(&f.approvals, "approvals", "", "who may approve on Sync objects and pull requests: never (no approval counts) or others (everyone except the author) (default: no limit)")
}

// ceilings returns the limits.
func (f *ceilingFlags) ceilings() (controller.Ceilings, error) {
	all := controller.Ceilings{MaxActivations: f.activations, MaxPrunes: f.prunes}
	for _, one := range []struct {
		flag, word string
		to         *string
		of         map[string]string
	}{
		{"instances", f.instances, &all.Instances, map[string]string{"": "", "hold": string(v1alpha1.InstancesHold), "prune": string(v1alpha1.InstancesPrune)}},
		{"adoption", f.adoption, &all.Adoption, map[string]string{"": "", "refuse": string(v1alpha1.AdoptRefuse), "if-unowned": string(v1alpha1.AdoptIfUnowned), "adopt": string(v1alpha1.AdoptAll)}},
		{"approvals", f.approvals, &all.Approvals, map[string]string{"": "", "never": controller.ApprovalsNever, "others": controller.ApprovalsOthers}},
	} {
		value, known := one.of[one.word]
		if !known {
			return all, usagef("--%s: %q is none of %s", one.flag, one.word, strings.Join(slices.Sorted(maps.Keys(one.of))[1:], ", "))
		}
		*one.to = value
	}
	return all, nil
}

func newController(t *terminal) *cobra.Command {
	f := new(controllerFlags)
	cmd := &cobra.Command{
		Use:   "controller [flags]",
		Short: "Run the Sync objects of a cluster",
		Long: `Controller runs inside the cluster, and takes its Syncs from Sync objects instead of a file. It
makes passes over each as run does. The status of the object shows the result, and 'kubectl
describe sync' the Events.

A Sync that is created, changed or deleted is taken up at once. The objects of a deleted Sync
stay in the cluster, unless its deletionPolicy is Delete. With suspend: true, passes write nothing and
report what they would do. Every new value of the
annotation reconcile.fluxcd.io/requestedAt makes one pass.

Replicas elect a leader. Only the leader makes passes and writes. After SIGTERM, passes may
finish their writes for two seconds, and another replica leads within five. A leader that is
killed is replaced within twenty seconds.

The controller acts as the service account that spec.serviceAccountName names in the namespace of
the Sync, for every read, dry run, count and write; without it, as --default-service-account.
A Sync without either does not run. The controller needs the right to impersonate these accounts,
and never acts as itself or as an account of kube-system.

With --watch-label-selector, several controllers share the Syncs of a cluster as shards: one with
'!sharding.fluxcd.io/key', and one with sharding.fluxcd.io/key=NAME for each shard NAME. The
replicas of each elect a leader of their own. A Sync whose label changes goes to the other
controller, and its objects stay.

A Sync that asks for more than --max-activations, --max-prunes, --instances, --adoption or
--approvals allow does not run, and its condition Stalled names the limit.

The controller reads credentials only from Secrets in the namespace of the Sync. Its own files
and environment are not for Syncs: spec.source.repo must be an https URL, or spec.source.sourceRef
names a source of Flux.

With --webhook-address, a push starts a pass at once, and a pull request starts its preview. The
forge sends its events to the path /webhook/NAMESPACE there; source.webhook of each Sync names its
Secret in that namespace. Only the leader has Syncs to wake: with --webhook-endpoints, it enters
$POD_IP into the EndpointSlice of a Service without a selector.

With previews: true in a Sync, the leader previews the pull requests into its branch, two at a
time, each in a process of its own with 1 GiB of memory. The Syncs of a namespace with the
same repository and clusterName have one comment and one status, headgate/CLUSTER/NAMESPACE/preview,
or headgate/CLUSTER/preview in ` + v1alpha1.DefaultNamespace + `. The first of them by name posts, with its token.

It answers GET /healthz and /readyz on --health-address, and GET /metrics on --metrics-address.
` + aboutTraces,
		Example: `  headgate controller
  headgate controller --watch-namespace team-a`,
		Args: takes(0, 0, "controller takes its Syncs from the cluster"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.control(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.home, "namespace", "n", v1alpha1.DefaultNamespace, "namespace of the controller, which contains the lease of the leader")
	flags.StringVar(&f.namespace, "watch-namespace", "", "run only the Syncs of this `namespace` (default: all)")
	addNumber(cmd, &f.most, "concurrent", 10, v1alpha1.Range{Least: 1, Most: 10_000}, "maximum `number` of passes that work at the same time")
	f.seen.addTo(cmd, ":9440", ":8080")
	f.hooks.addTo(cmd)
	flags.StringVar(&f.endpoints, "webhook-endpoints", "", "`name` of the EndpointSlice that gets the address of the leader, from $POD_IP (default: none)")
	flags.StringVar(&f.pprof, "pprof-address", "", "serve profiles of the process on this `address` of its own machine, such as 127.0.0.1:6060 (default: none)")
	flags.StringVar(&f.selector, "watch-label-selector", "", "run only the Syncs whose labels match this `selector`, such as sharding.fluxcd.io/key=a (default: all)")
	flags.StringVar(&f.account, "default-service-account", "", "`name` of the service account of Syncs that name none, in the namespace of each (default: each Sync names one)")
	f.ceilings.addTo(cmd)
	flags.BoolVar(&f.near, "no-cross-namespace-refs", false, "refuse a Sync whose sourceRef names another namespace")
	addPlain(cmd, &f.plain)
	addAudit(cmd, &f.audit, auditOfProcess, "-")
	f.in.addTo(cmd)
	f.cache.addTo(cmd)
	f.trust.addTo(cmd)
	return cmd
}

// control runs the Sync objects of a cluster until ctx is done.
func (t *terminal) control(ctx context.Context, f *controllerFlags) error {
	ceilings, err := f.ceilings.ceilings()
	if err != nil {
		return err
	}
	if host, _, err := net.SplitHostPort(f.pprof); f.pprof != "" && (err != nil || !network.IsLoopback(host)) {
		return usagef("--pprof-address %q: must be an address of this machine, such as 127.0.0.1:6060; reach it with 'kubectl port-forward'", f.pprof)
	}
	shard, err := labels.Parse(f.selector)
	if err != nil {
		return usagef("--watch-label-selector: %v", err)
	}
	record, err := t.audit(f.audit)
	if err != nil {
		return err
	}
	clones := &git.Shared{}
	budget, err := f.cache.budget(clones.Drop)
	if err != nil {
		return err
	}
	t.logRun()
	t.saveMemory()
	traces := tracerOfPasses(f.plain) //nolint:contextcheck // the last export outlives the context
	defer traces.Close()              //nolint:contextcheck // the same
	signal.Ignore(syscall.SIGHUP)
	config, err := f.in.config()
	if err != nil {
		return err
	}
	counts := metrics.Into(runtimemetrics.Registry)
	counts.Cache(budget.Used)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, counts} })
	waits := &waiting{what: "the CRD of Syncs"}
	listening, err := f.seen.listen(ctx, counts, waits.list)
	if err != nil {
		return err
	}
	var served sync.WaitGroup
	defer served.Wait()
	serving, end := context.WithCancel(context.WithoutCancel(ctx)) // probes are answered until the passes have ended
	defer end()
	for _, one := range listening {
		served.Go(func() { one.serve(serving) })
	}
	hooks := &forge.Webhooks{Log: logHandled}
	if f.hooks.address != "" {
		serve, err := webhooksOfObjects(serving, f.hooks, hooks)
		if err != nil {
			return err
		}
		served.Go(serve)
	}
	endpoints := controller.Endpoints{Slice: f.endpoints, Address: t.getenv("POD_IP")}
	if endpoints.Slice != "" && endpoints.Address == "" {
		return usagef("--webhook-endpoints: the environment has no POD_IP, the address of this replica")
	}
	err = controller.Run(ctx, controller.Options{
		Endpoints: endpoints,
		Config:    config, Wire: t.target, Metrics: counts,
		Home: f.home, Namespace: f.namespace, Selector: shard, Pprof: f.pprof, ServiceAccount: f.account, Ceilings: ceilings, NoCrossNamespaceRefs: f.near, Protection: protection(),
		Around: target.Surroundings{
			Event: func(e reconcile.Event) { measure(counts, e) }, Audit: record, Cache: f.cache.clones(), Budget: budget, Peers: &reconcile.Peers{}, PullRequests: &target.PullRequests{Tenants: true}, Hooks: hooks,
			Own: f.home, Queue: engine.NewQueue(f.most), Remotes: new(reconcile.Remotes), Shares: &cluster.Shares{}, Boards: &target.Boards{Tenants: true}, Clones: clones, Memo: new(memo.Memory),
			KeyFiles: f.trust.keys, TrustedRoot: f.trust.root, Plain: f.plain, Tracer: traces,
		},
		CRD: crdOfSyncs(), Waits: waits.set,
	})
	return err
}

// A waiting is what a replica waits for before it is ready.
type waiting struct {
	mu   sync.Mutex
	what string // "" for nothing
}

func (w *waiting) set(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.what = what
	if what == "" {
		slog.Info("the Sync objects are known")
	}
}

func (w *waiting) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.what == "" {
		return nil
	}
	return []string{w.what}
}

// crdOfSyncs returns the CRD of examples/controller.
func crdOfSyncs() *unstructured.Unstructured {
	text, err := examples.Manifests.ReadFile("controller/crds/headgate.dev_syncs.yaml")
	var u unstructured.Unstructured
	if err == nil {
		err = yaml.UnmarshalStrict(text, &u.Object)
	}
	if err != nil {
		panic(err) // it is a part of the program
	}
	return &u
}

// protection returns the admission policy of examples/controller, with its binding.
func protection() controller.Protection {
	var p controller.Protection
	for i, document := range strings.Split(examples.Approvals, "\n---\n") {
		into := any(&p.Policy)
		if i == 1 {
			into = &p.Binding
		}
		if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
			panic(err) // it is a part of the program
		}
	}
	return p
}
