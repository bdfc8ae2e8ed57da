package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/target"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// clusterFlags say which cluster, and as whom.
type clusterFlags struct {
	kubeconfig, context, as string
	groups                  []string
}

func (f *clusterFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "`file` to read the cluster from (default: KUBECONFIG, ~/.kube/config, or the cluster we run in)")
	flags.StringVar(&f.context, "context", "", "context of the kubeconfig")
	flags.StringVar(&f.as, "as", "", "`user` to act as")
	flags.StringSliceVar(&f.groups, "as-group", nil, "`group` to act as")
}

// config is how to reach the cluster.
func (f *clusterFlags) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.AuthInfo.Impersonate = f.as
	overrides.AuthInfo.ImpersonateGroups = f.groups
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	cfg.WarningHandler = logged{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return tracer{next} })
	return cfg, nil
}

// syncFlags name the sync, by which we tell what is ours in the cluster.
type syncFlags struct {
	name, namespace string
}

func (f *syncFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "default", "name of this sync; what one name applied, only that name updates and prunes")
	flags.StringVarP(&f.namespace, "namespace", "n", "headgate-system", "namespace that holds the inventory")
}

func (f *syncFlags) sync() inventory.Sync {
	return inventory.Sync{Namespace: f.namespace, Name: f.name}
}

// renderFlags say how to render.
type renderFlags struct {
	owner      choice
	conversion choice
	others     choice
	service    string
	ca         string
	packageFlags
	limits limitFlags
}

func newRenderFlags() *renderFlags {
	return &renderFlags{
		owner:      oneOf("auto", "headgate", "crossplane"),
		conversion: oneOf("safe", "inject", "none"),
		others:     oneOf("skip", "refuse", "apply"),
	}
}

// owners are the words of --crd-owner, strategies those of --conversion, and so on.
var (
	owners = map[string]v1alpha1.CRDOwner{
		"auto":       v1alpha1.OwnerAuto,
		"headgate":   v1alpha1.OwnerHeadgate,
		"crossplane": v1alpha1.OwnerCrossplane,
	}
	strategies = map[string]v1alpha1.ConversionStrategy{
		"safe":   v1alpha1.ConversionSafe,
		"inject": v1alpha1.ConversionInject,
		"none":   v1alpha1.ConversionNone,
	}
	others = map[string]v1alpha1.Others{
		"skip":   v1alpha1.OthersSkip,
		"refuse": v1alpha1.OthersRefuse,
		"apply":  v1alpha1.OthersApply,
	}
)

func (f *renderFlags) addTo(cmd *cobra.Command) {
	f.owner.addTo(cmd, "crd-owner", "", "who makes the CRDs of definitions; auto is crossplane where its API is served or the commit installs it")
	f.conversion.addTo(cmd, "conversion", "", "what becomes of conversion webhooks, whose service no package holds")
	f.others.addTo(cmd, "others", "", "what becomes of objects that configure Flux or Argo CD, and of what is encrypted with SOPS")
	cmd.Flags().StringVar(&f.service, "conversion-service", "", "with --conversion=inject: the webhook's service, as `namespace/name[:port]`")
	cmd.Flags().StringVar(&f.ca, "conversion-ca", "", "with --conversion=inject: `file` with the webhook's CA, in PEM")
	f.packageFlags.addTo(cmd)
	f.limits.addTo(cmd)
}

// options are the flags as package render takes them.
func (f *renderFlags) options() (render.Options, error) {
	var s v1alpha1.Sync
	err := f.into(&s.Spec)
	return target.Reconciler(s).Options, err
}

// into says in a Sync what the flags say: they mean the same.
func (f *renderFlags) into(spec *v1alpha1.Spec) error {
	spec.CRDOwner = owners[f.owner.value]
	spec.Others = others[f.others.value]
	if err := f.limits.into(&spec.Limits); err != nil {
		return err
	}
	spec.Conversion.Strategy = strategies[f.conversion.value]
	if err := f.packageFlags.into(spec); err != nil {
		return err
	}
	if spec.Conversion.Strategy == v1alpha1.ConversionInject {
		return f.inject(&spec.Conversion)
	}
	if f.service != "" || f.ca != "" {
		return usagef("--conversion-service and --conversion-ca go with --conversion=inject")
	}
	return nil
}

func (f *renderFlags) inject(c *v1alpha1.Conversion) error {
	namespace, name, ok := strings.Cut(f.service, "/")
	name, port, ported := strings.Cut(name, ":")
	if !ok || namespace == "" || name == "" || f.ca == "" {
		return usagef("--conversion=inject wants --conversion-service=namespace/name[:port] and --conversion-ca=FILE")
	}
	c.Service = &v1alpha1.Service{Namespace: namespace, Name: name}
	if ported {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return usagef("--conversion-service: %q is no port", port)
		}
		c.Service.Port = int64(n)
	}
	ca, err := os.ReadFile(f.ca)
	c.CABundle = string(ca)
	return err
}

// packageFlags say what the packages of a commit are.
type packageFlags struct {
	release  string
	packages []string
}

func (f *packageFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.release, "crossplane-version", "", "follow the package manager of this `version` of Crossplane, as v2.3.1 (default: the newest known)")
	flags.StringArrayVar(&f.packages, "package", nil, "`directory=name` of a provider's CRDs without a crossplane.yaml; with ,safe-start behind the name, only those definitions are active that policies activate")
}

// into says in a Sync what the flags say. What is wrong with it is up to render.
func (f *packageFlags) into(spec *v1alpha1.Spec) error {
	spec.CrossplaneVersion = f.release
	for _, arg := range f.packages {
		p, err := packageOfFlag(arg)
		if err != nil {
			return err
		}
		spec.Packages = append(spec.Packages, p)
	}
	return nil
}

// packageOfFlag reads a value of --package. What follows the name is a capability: one that Headgate
// does not know is an error, because without safe-start every definition of the package is active.
func packageOfFlag(arg string) (v1alpha1.Package, error) {
	directory, rest, ok := strings.Cut(arg, "=")
	if !ok {
		return v1alpha1.Package{}, usagef("--package wants directory=name or directory=name,safe-start, not %q", arg)
	}
	name, capability, capable := strings.Cut(rest, ",")
	if capable && !crossplane.IsSafeStart(capability) {
		return v1alpha1.Package{}, usagef("--package %q: Headgate knows no capability %q; write directory=name,safe-start, or directory=name for a package without it", arg, capability)
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return v1alpha1.Package{}, usagef("--package %q: %q is no name of a package: %s", arg, name, wrong[0])
	}
	return v1alpha1.Package{Path: directory, Name: name, SafeStart: &capable}, nil
}

// passFlags are every flag of a pass over a cluster.
type passFlags struct {
	sourceFlags
	clusterFlags
	syncFlags
	*renderFlags
	maxPrunes, maxActivations int
	approve                   approveFlag
	catalogue                 choice
	adoption, conflicts       choice
	instances, drift          choice
	deactivation              choice
	management                choice
	takeOver                  bool
}

func newPassFlags() *passFlags {
	return &passFlags{
		renderFlags:  newRenderFlags(),
		catalogue:    oneOf("commit", "live"),
		adoption:     oneOf("if-unowned", "refuse", "adopt"),
		conflicts:    oneOf("refuse", "take"),
		instances:    oneOf("hold", "prune"),
		deactivation: oneOf("never", "when-unused"),
		drift:        oneOf("correct", "report"),
		management:   oneOf("default", "observable"),
	}
}

// adoptions are the words of --adoption.
var adoptions = map[string]v1alpha1.Adoption{
	"if-unowned": v1alpha1.AdoptIfUnowned,
	"refuse":     v1alpha1.AdoptRefuse,
	"adopt":      v1alpha1.AdoptAll,
}

func (f *passFlags) addTo(cmd *cobra.Command) {
	f.sourceFlags.addTo(cmd)
	f.clusterFlags.addTo(cmd)
	f.syncFlags.addTo(cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.maxPrunes, "max-prunes", 0, "hold all prunes of a pass that has more of them than this (default: a fifth of what is owned, at least 3, at most 20)")
	flags.IntVar(&f.maxActivations, "max-activations", 0, "hold what a policy or package would newly activate if that is more definitions than this; those that a policy names in full do not count (default 100)")
	f.approve.addTo(cmd)
	flags.BoolVar(&f.takeOver, "take-over", false, "apply this source from now on, where the sync applied another one: what that applied, and this does not hold, is pruned")
	f.catalogue.addTo(cmd, "catalogue", "", "where definitions are looked for; live is in the cluster too")
	f.management.addTo(cmd, "management-policy", "", "what this sync may do; observable only looks, with rights to get, list and watch, at what somebody else applies")
	f.adoption.addTo(cmd, "adoption", "", "objects that are there already; adopt takes them from Flux, Argo CD, Helm and the like, never from Crossplane")
	f.conflicts.addTo(cmd, "conflicts", "", "fields that another field manager applies")
	f.instances.addTo(cmd, "instances", "", "managed resources, XRs and claims that the commit no longer holds, whose deletion reaches the cloud")
	f.deactivation.addTo(cmd, "deactivation", "", "active definitions that no policy names any more; when-unused takes them back once nobody uses them")
	f.drift.addTo(cmd, "drift", "", "what somebody changed or deleted that this sync applied; report leaves it and exits with 3")
	f.renderFlags.addTo(cmd)
}

// named returns an error where only a name tells the source from others, and the command line gives
// none.
func (f *passFlags) named(cmd *cobra.Command, source reconcile.Source) error {
	d, plain := source.(git.Directory)
	if !plain || f.observable() || cmd.Flags().Changed("name") || !git.IsNameless(d.Source()) {
		return nil
	}
	return usagef("%s is in no Git repository, so that nothing tells it from another directory; specify --name", d.Root)
}

// observable says whether the sync only looks.
func (f *passFlags) observable() bool { return f.management.value == "observable" }

// asSync is the Sync that means what the flags say.
func (f *passFlags) asSync() (v1alpha1.Sync, error) {
	var s v1alpha1.Sync
	s.Namespace, s.Name = f.namespace, f.name
	switch {
	case f.maxPrunes < 0 || f.maxActivations < 0:
		return s, usagef("--max-prunes and --max-activations cannot be less than 0")
	case f.observable() && (f.maxPrunes > 0 || f.maxActivations > 0 || f.adoption.value != "if-unowned" || f.conflicts.value != "refuse" || f.instances.value != "hold" || f.deactivation.value != "never" || f.takeOver || len(f.approve) > 0):
		return s, usagef("--max-prunes, --max-activations, --approve, --take-over, --adoption, --conflicts, --instances and --deactivation do nothing with --management-policy=observable")
	}
	if err := f.into(&s.Spec); err != nil {
		return s, err
	}
	if f.takeOver {
		s.Spec.Source.TakeOver = plan.TakeAny
	}
	s.Spec.MaxPrunes, s.Spec.MaxActivations = &f.maxPrunes, &f.maxActivations
	if f.catalogue.value == "live" {
		s.Spec.Catalogue = v1alpha1.CatalogueLive
	}
	s.Spec.Adoption = adoptions[f.adoption.value]
	if f.conflicts.value == "take" {
		s.Spec.Conflicts = v1alpha1.ConflictsTake
	}
	if f.instances.value == "prune" {
		s.Spec.Instances = v1alpha1.InstancesPrune
	}
	if f.deactivation.value == "when-unused" {
		s.Spec.Deactivation = v1alpha1.DeactivationWhenUnused
	}
	if f.drift.value == "report" {
		s.Spec.Drift = v1alpha1.DriftReport
	}
	if f.observable() {
		s.Spec.ManagementPolicy = v1alpha1.PolicyObservable
	}
	return s, nil
}

// offline wires a pass over a source up to, but not including, its cluster.
func (t *terminal) offline(f *passFlags, source reconcile.Source) (reconcile.Reconciler, error) {
	s, err := f.asSync()
	if err != nil {
		return reconcile.Reconciler{}, err
	}
	r := target.Reconciler(s)
	r.Approvals = f.approve.given
	r.Options.Memo = t.memo(&f.sourceFlags, source)
	r.Source = shown{t.packaged(&f.sourceFlags, source, r.Options), t.progress}
	return r, nil
}

// looking wires what only looks at a source, and where it is live at the cluster, too.
func (t *terminal) looking(f *passFlags, source reconcile.Source, live bool) (reconcile.Reconciler, error) {
	if live {
		return t.reconciler(f, source, cluster.Options{})
	}
	return t.offline(f, source)
}

// reconciler wires a pass over a source and a cluster.
func (t *terminal) reconciler(f *passFlags, source reconcile.Source, how cluster.Options) (reconcile.Reconciler, error) {
	s, err := f.asSync()
	if err != nil {
		return reconcile.Reconciler{}, err
	}
	cfg, err := f.config()
	if err != nil {
		return reconcile.Reconciler{}, err
	}
	r, place, err := target.Reach(s, cfg, t.showing(how))
	if err != nil {
		return r, err
	}
	r.Approvals = f.approve.given
	// A pass renders several times: while it waits, packages may bring what it waits for.
	if r.Options.Memo = t.memo(&f.sourceFlags, source); r.Options.Memo == nil {
		r.Options.Memo = new(memo.Memory)
	}
	packages := t.packaged(&f.sourceFlags, source, r.Options)
	packages.Secret, packages.Installed, packages.Images = place.Secret, place.Packages, place.ImageConfigs
	r.Source, r.NoWait = shown{packages, t.progress}, how.NoWait
	return r, nil
}

// cluster is the cluster that the flags name, as a sync sees it.
func (t *terminal) cluster(f *clusterFlags, of inventory.Sync, how cluster.Options) (*cluster.Cluster, error) {
	cfg, err := f.config()
	if err != nil {
		return nil, err
	}
	return cluster.New(cfg, of, t.showing(how))
}

// showing are options that show the progress.
func (t *terminal) showing(how cluster.Options) cluster.Options {
	how.Progress = func(e cluster.Event) {
		t.progress.Phase(e.Phase, e.Done, e.Total)
		log := slog.Info
		if e.Phase == "observe" {
			log = slog.Debug
		}
		log(e.Phase, "object", e.Object, "done", e.Done, "total", e.Total)
	}
	return how
}

// A shown source tells the progress what a pass is doing until its cluster does.
type shown struct {
	reconcile.Source
	progress *progress
}

func (s shown) Fetch(ctx context.Context, ref string) (render.Input, error) {
	s.progress.Phase("fetch", 0, 0)
	in, err := s.Source.Fetch(ctx, ref)
	s.progress.Phase("render", 0, 0) // what follows a fetch
	if err == nil {
		slog.Info("fetched", "ref", ref, "revision", in.Revision, "path", in.Path)
	}
	return in, err
}

// logged are the warnings of an API server: many, and mostly known.
type logged struct{}

func (logged) HandleWarningHeader(_ int, _, text string) { slog.Info(text, "from", "API server") }

// A tracer logs the requests that go through it.
type tracer struct{ http.RoundTripper }

func (t tracer) RoundTrip(req *http.Request) (*http.Response, error) {
	begun := time.Now()
	resp, err := t.RoundTripper.RoundTrip(req)
	result := any(err)
	if err == nil {
		result = resp.StatusCode
	}
	slog.DebugContext(req.Context(), req.Method, "url", req.URL.RequestURI(), "took", time.Since(begun).Round(time.Millisecond), "result", result)
	return resp, err
}
