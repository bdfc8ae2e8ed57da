package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/target"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clusterFlags holds the flags for the cluster and the user.
type clusterFlags struct {
	kubeconfig, context, as string
	groups                  []string
}

func (f *clusterFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: KUBECONFIG, ~/.kube/config, or the cluster in which Headgate runs)")
	flags.StringVar(&f.context, "context", "", "context of the kubeconfig")
	values(cmd, "context", f.contexts)
	flags.StringVar(&f.as, "as", "", "`user` to act as")
	flags.StringSliceVar(&f.groups, "as-group", nil, "`group` to act as")
}

// load returns the configuration of the cluster, with the same rules as kubectl.
func (f *clusterFlags) load() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.AuthInfo.Impersonate = f.as
	overrides.AuthInfo.ImpersonateGroups = f.groups
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// errNoKubeconfig replaces the text of client-go, which suggests a variable that Headgate does not read.
var errNoKubeconfig = errors.New("no kubeconfig was found, so there is no cluster to ask")

// A noContextError is the error for a context that the kubeconfig does not have.
type noContextError struct{ error }

func (e noContextError) Error() string { return "kubeconfig: " + e.error.Error() }
func (e noContextError) Unwrap() error { return e.error }

// chosen returns the context that the flag or the kubeconfig names, and nil if there is none of that name.
func (f *clusterFlags) chosen() (name string, of *clientcmdapi.Context, err error) {
	raw, err := f.load().RawConfig()
	name = cmp.Or(f.context, raw.CurrentContext)
	return name, raw.Contexts[name], err
}

// config returns the REST configuration of the cluster.
func (f *clusterFlags) config() (*rest.Config, error) {
	cfg, err := f.load().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errNoKubeconfig
	}
	if err != nil {
		if name, of, unread := f.chosen(); unread == nil && name != "" && of == nil {
			return nil, noContextError{err}
		}
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	cfg.WarningHandler = logged{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return tracer{next} })
	return cfg, nil
}

// String names the cluster for messages, with its context and server.
func (f *clusterFlags) String() string {
	cfg, err := f.load().ClientConfig()
	if err != nil {
		return "the cluster" // config reports this error
	}
	name, of, err := f.chosen()
	if err != nil || of == nil {
		return fmt.Sprintf("the cluster at %s", cfg.Host)
	}
	return fmt.Sprintf("cluster %s at %s (context %s)", of.Cluster, cfg.Host, name)
}

// syncFlags holds the name of the sync, which identifies our objects in the cluster.
type syncFlags struct {
	name, namespace string
}

func (f *syncFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "default", "name of this sync; only a sync of the same name updates and prunes what it applied")
	flags.StringVarP(&f.namespace, "namespace", "n", "headgate-system", "namespace that holds the inventory")
	values(cmd, "name", syncsInFile)
	checkFirst(cmd, f.check)
}

// check returns an error for names that the API server would reject.
func (f *syncFlags) check() error {
	const rule = "use lower case letters, digits and '-'"
	if len(validation.IsDNS1123Subdomain(f.name)) > 0 {
		return usagef("--name: %q cannot be the name of a sync; %s, as in team-a", f.name, rule)
	}
	if len(validation.IsDNS1123Label(f.namespace)) > 0 {
		return usagef("--namespace: %q cannot be a namespace; %s, as in headgate-system", f.namespace, rule)
	}
	return nil
}

func (f *syncFlags) sync() inventory.Sync {
	return inventory.Sync{Namespace: f.namespace, Name: f.name}
}

// renderFlags holds the render options in the fields of a Spec.
type renderFlags struct {
	spec    v1alpha1.Spec
	service string
	ca      string
	packageFlags
	limits limitFlags
}

// An optionFlag sets an option in a Spec. Every option of package target is a flag.
type optionFlag struct {
	target.Option

	spec *v1alpha1.Spec
}

func (f optionFlag) Set(word string) error { return f.Option.Set(f.spec, word) }

func (f optionFlag) String() string {
	if f.spec == nil { // pflag compares with a zero value
		return ""
	}
	return f.Word(f.spec)
}

func (f optionFlag) Type() string {
	if f.Words == nil {
		return "int"
	}
	return "word"
}

// addTo registers the option as a flag that shells can complete. Its default is the first word.
func (f optionFlag) addTo(cmd *cobra.Command) {
	if f.Words == nil {
		cmd.Flags().Var(f, f.Flag, f.Usage)
		return
	}
	_ = f.Set(f.Words[0])
	cmd.Flags().Var(f, f.Flag, f.Usage+": "+strings.Join(f.Words, ", "))
	// It fails only for a flag that does not exist or that was registered twice.
	_ = cmd.RegisterFlagCompletionFunc(f.Flag, cobra.FixedCompletions(f.Words, cobra.ShellCompDirectiveNoFileComp))
}

// addOptions registers flags that set options in a Spec: the render options, or all others.
func addOptions(cmd *cobra.Command, spec *v1alpha1.Spec, rendering bool) {
	for _, o := range target.Options {
		if o.Rendering == rendering {
			optionFlag{o, spec}.addTo(cmd)
		}
	}
}

func (f *renderFlags) addTo(cmd *cobra.Command) {
	addOptions(cmd, &f.spec, true)
	cmd.Flags().StringVar(&f.service, "conversion-service", "", "with --conversion=inject: the webhook's service, as `namespace/name[:port]`")
	cmd.Flags().StringVar(&f.ca, "conversion-ca", "", "with --conversion=inject: `file` with the webhook's CA, in PEM")
	f.packageFlags.addTo(cmd)
	cmd.Flags().StringArrayVar(&f.schemas, "schemas", nil, "a `directory or file` of the commit with CRDs, definitions and XRDs that something else applies: objects are checked against them")
	f.limits.addTo(cmd)
}

// rendering returns the Sync with the render options of the flags.
func (f *renderFlags) rendering() (v1alpha1.Sync, error) {
	s := v1alpha1.Sync{Spec: f.spec}
	spec := &s.Spec
	if err := f.limits.into(&spec.Limits); err != nil {
		return s, err
	}
	if err := f.packageFlags.into(spec); err != nil {
		return s, err
	}
	if spec.Conversion.Strategy == v1alpha1.ConversionInject {
		return s, f.inject(&spec.Conversion)
	}
	if f.service != "" || f.ca != "" {
		return s, usagef("--conversion-service and --conversion-ca go with --conversion=inject")
	}
	return s, nil
}

func (f *renderFlags) inject(c *v1alpha1.Conversion) error {
	namespace, name, ok := strings.Cut(f.service, "/")
	name, port, ported := strings.Cut(name, ":")
	if !ok || namespace == "" || name == "" || f.ca == "" {
		return usagef("--conversion=inject needs --conversion-service=namespace/name[:port] and --conversion-ca=FILE")
	}
	c.Service = &v1alpha1.Service{Namespace: namespace, Name: name}
	if ported {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return usagef("--conversion-service: %q is not a port", port)
		}
		c.Service.Port = int64(n)
	}
	ca, err := readFile("conversion-ca", f.ca)
	c.CABundle = string(ca)
	return err
}

// packageFlags holds the flags that declare packages of a commit.
type packageFlags struct {
	release    string
	kubernetes string
	schemas    []string
	packages   []string
}

func (f *packageFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.release, "crossplane-version", "", "follow the package manager of this `version` of Crossplane, such as v2.3.1 (default: the newest known)")
	flags.StringVar(&f.kubernetes, "kubernetes-version", "", "the `release` of Kubernetes in the cluster, such as 1.34: kinds, versions and fields that it does not have are errors (default: warnings, because the release is not known)")
	flags.StringArrayVar(&f.packages, "package", nil, "`directory=name` of a provider's CRDs without a crossplane.yaml; with ,safe-start after the name, its definitions are inactive until a policy activates them")
}

// into copies the flags into a Sync. Render reports errors in the values.
func (f *packageFlags) into(spec *v1alpha1.Spec) error {
	spec.CrossplaneVersion, spec.KubernetesVersion, spec.Schemas = f.release, f.kubernetes, f.schemas
	for _, arg := range f.packages {
		p, err := packageOfFlag(arg)
		if err != nil {
			return err
		}
		spec.Packages = append(spec.Packages, p)
	}
	return nil
}

// packageOfFlag reads a value of --package. A capability may follow the name. An unknown capability is an error, because without
// safe-start every definition of the package would be active.
func packageOfFlag(arg string) (v1alpha1.Package, error) {
	directory, rest, ok := strings.Cut(arg, "=")
	if !ok {
		return v1alpha1.Package{}, usagef("--package must be directory=name or directory=name,safe-start, not %q", arg)
	}
	name, capability, capable := strings.Cut(rest, ",")
	if capable && !crossplane.IsSafeStart(capability) {
		return v1alpha1.Package{}, usagef("--package %q: Headgate knows no capability %q; write directory=name,safe-start, or directory=name for a package without it", arg, capability)
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return v1alpha1.Package{}, usagef("--package %q: %q is not the name of a package: %s", arg, name, wrong[0])
	}
	return v1alpha1.Package{Path: directory, Name: name, SafeStart: &capable}, nil
}

// passFlags holds all flags of a pass over a cluster.
type passFlags struct {
	sourceFlags
	clusterFlags
	syncFlags
	renderFlags
	fileFlags

	approve approveFlag
	signers []string // have no effect any more
	keys    []string // files of public keys of commits
	audit   string   // of a verb that writes
}

func (f *passFlags) addTo(cmd *cobra.Command) {
	f.sourceFlags.addTo(cmd)
	f.clusterFlags.addTo(cmd)
	f.syncFlags.addTo(cmd)
	f.approve.addTo(cmd)
	cmd.Flags().StringVar(&f.spec.Source.TakeOver, "take-over", "", "`source` that this sync applied before, as the refusal of another one names it; objects that the new source lacks are pruned")
	addOptions(cmd, &f.spec, false)
	cmd.Flags().StringArrayVar(&f.signers, "approval-signer", nil, "has no effect any more, as --approval-trailers")
	cmd.Flags().StringArrayVar(&f.keys, "commit-key", nil, "with --verify: `file` with public keys, OpenPGP or SSH; one of them must have signed; may be given several times")
	f.renderFlags.addTo(cmd)
	f.fileFlags.addTo(cmd, &f.syncFlags, &f.path)
	leaveOut(cmd, "approval-signer", "approval-trailers") // they have no effect any more
}

// mayWrite returns an error if no verb may write for the sync: it is suspended, or nothing identifies it.
func (f *passFlags) mayWrite(cmd *cobra.Command, source reconcile.Source) error {
	if f.fields().Suspend {
		return usagef("--file: %s has spec.suspend: true, so nothing is applied for it; set it to false, or look with --dry-run", f.fromFile.Name)
	}
	return f.named(cmd, source)
}

// named returns an error if the source has no identity besides the sync's name, and the command line sets no name.
func (f *passFlags) named(cmd *cobra.Command, source reconcile.Source) error {
	d, plain := source.(git.Directory)
	if !plain || f.observable() || f.fromFile != nil || cmd.Flags().Changed("name") || !git.IsNameless(d.Source()) {
		return nil
	}
	return usagef("%s is in no Git repository, so it cannot be told from another directory; specify --name", d.Root)
}

// observable reports whether the sync only observes.
func (f *passFlags) observable() bool {
	return f.fields().ManagementPolicy == v1alpha1.PolicyObservable
}

// fields returns the Spec that the flags, or the file, set.
func (f *passFlags) fields() *v1alpha1.Spec {
	if f.fromFile != nil {
		return &f.fromFile.Spec
	}
	return &f.spec
}

// comparesOnly returns an error for flags that have no effect when two commits are compared.
func (f *passFlags) comparesOnly() error {
	if f.spec.Source.Verify.Mode != v1alpha1.VerifyNever {
		return usagef("--verify refuses what a pass would apply, and comparing two commits applies nothing; leave it out")
	}
	return nil
}

// asSync returns the Sync with the values of all flags.
func (f *passFlags) asSync() (v1alpha1.Sync, error) {
	if f.fromFile != nil {
		return *f.fromFile, nil
	}
	if f.observable() {
		vain := target.WithoutEffect(&f.spec)
		if f.spec.Source.TakeOver != "" {
			vain = append(vain, "--take-over")
		}
		if len(f.approve) > 0 {
			vain = append(vain, "--approve")
		}
		if len(vain) > 0 {
			return v1alpha1.Sync{}, usagef("%s: these flags do nothing with --management-policy=observable", strings.Join(vain, ", "))
		}
	}
	s, err := f.rendering()
	s.Namespace, s.Name = f.namespace, f.name
	s.Spec.Approvals.Signers = f.signers
	if s.Spec.Source.Verify.Keys, err = contentsOf("--commit-key", f.keys, err); err != nil {
		return s, err
	}
	if verifies := s.Spec.Source.Verify.Mode != v1alpha1.VerifyNever; verifies != (len(f.keys) > 0) {
		return s, usagef("--commit-key goes with --verify=head, tag or tag-and-head, and names the public keys; one of them must have signed")
	}
	return s, err
}

// contentsOf returns the contents of the files that a flag names, or err if it is not nil.
func contentsOf(flag string, files []string, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	var all []string
	for _, file := range files {
		content, err := readFile(strings.TrimPrefix(flag, "--"), file)
		if err != nil {
			return nil, err
		}
		all = append(all, string(content))
	}
	return all, nil
}

// surroundings returns the surroundings of passes over a source, according to its flags.
func (t *terminal) surroundings(f *sourceFlags, source reconcile.Source) target.Surroundings {
	in := t.withoutMemo(f)
	in.Memo = t.memo(f, source)
	return in
}

// withoutMemo returns the same surroundings without a memo.
func (t *terminal) withoutMemo(f *sourceFlags) target.Surroundings {
	return target.Surroundings{Packages: f.kept("packages"), Offline: f.offline, KeyFiles: f.keys, TrustedRoot: f.root, Secret: t.masked.hide}
}

// reading returns the reconciler of a verb that reads one commit and writes to no cluster, and the source and the ref of the commit. A
// Sync of a file replaces the flags.
func (t *terminal) reading(from *sourceFlags, args []string, how *renderFlags, file *v1alpha1.Sync) (reconcile.Reconciler, reconcile.Source, string, error) {
	source, ref, err := t.source(from, args)
	if err != nil {
		return reconcile.Reconciler{}, nil, "", err
	}
	s, err := how.rendering()
	if err != nil {
		return reconcile.Reconciler{}, nil, "", err
	}
	if file != nil {
		s = *file
	}
	r, err := t.wire(s, source, t.surroundings(from, source), cluster.Options{})
	return r, source, ref, err
}

// wire wires passes of a Sync and shows their progress.
func (t *terminal) wire(s v1alpha1.Sync, source reconcile.Source, in target.Surroundings, how cluster.Options) (reconcile.Reconciler, error) {
	return t.wireAs(s, source, in, target.How{Cluster: t.showing(how)})
}

func (t *terminal) wireAs(s v1alpha1.Sync, source reconcile.Source, in target.Surroundings, how target.How) (reconcile.Reconciler, error) {
	w, err := target.Wire(s, source, in, how)
	if err != nil {
		return reconcile.Reconciler{}, err
	}
	t.atEnd = append(t.atEnd, w.Close)
	w.Notice = func(what string) { slog.Warn("still waiting", "for", what) }
	if w.Source != nil {
		w.Source = shown{w.Source, t.progress}
	}
	return w.Reconciler, nil
}

// offline wires comparisons of two commits of a source, without a cluster.
func (t *terminal) offline(f *passFlags, source reconcile.Source) (reconcile.Reconciler, error) {
	s, err := f.asSync()
	if err != nil {
		return reconcile.Reconciler{}, err
	}
	in := t.surroundings(&f.sourceFlags, source)
	in.Approvals = f.approvals(f.approve.given)
	return t.wireAs(s, source, in, target.How{Cluster: t.showing(cluster.Options{}), Keeps: true})
}

// explained renders a commit with what explains it. With live, it also looks at the cluster, and so does the Reconciler that it returns.
func (t *terminal) explained(cmd *cobra.Command, f *passFlags, args []string, live bool) (render.Desired, reconcile.Reconciler, error) {
	source, ref, err := t.source(&f.sourceFlags, args)
	if err != nil {
		return render.Desired{}, reconcile.Reconciler{}, err
	}
	r, err := t.looking(f, source, live)
	if err != nil {
		return render.Desired{}, reconcile.Reconciler{}, err
	}
	r.Options.Explains = true
	want, err := r.Render(cmd.Context(), ref)
	return want, r, err
}

// looking wires read-only passes over a source and, if live is set, over the cluster.
func (t *terminal) looking(f *passFlags, source reconcile.Source, live bool) (reconcile.Reconciler, error) {
	if live {
		return t.reconciler(f, source, cluster.Options{})
	}
	s, err := f.asSync()
	if err != nil {
		return reconcile.Reconciler{}, err
	}
	in := t.surroundings(&f.sourceFlags, source)
	in.Approvals = f.approvals(f.approve.given)
	return t.wire(s, source, in, cluster.Options{})
}

// reconciler wires passes over a source and a cluster.
func (t *terminal) reconciler(f *passFlags, source reconcile.Source, how cluster.Options) (reconcile.Reconciler, error) {
	s, err := f.asSync()
	if err != nil {
		return reconcile.Reconciler{}, err
	}
	in := t.surroundings(&f.sourceFlags, source)
	in.Approvals = f.approvals(f.approve.given)
	if in.Cluster, err = f.config(); err != nil {
		return reconcile.Reconciler{}, err
	}
	if in.Audit, err = t.audit(f.audit); err != nil {
		return reconcile.Reconciler{}, err
	}
	return t.wire(s, source, in, how)
}

// cluster returns the cluster that the flags select, as a sync sees it.
func (t *terminal) cluster(f *clusterFlags, of inventory.Sync) (*cluster.Cluster, error) {
	cfg, err := f.config()
	if err != nil {
		return nil, err
	}
	return cluster.New(cfg, of, t.showing(cluster.Options{}))
}

// showing returns options that report progress on the terminal.
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

// A shown source reports the phases of a pass on the terminal until the cluster reports its own.
type shown struct {
	reconcile.Source
	progress *progress
}

func (s shown) Fetch(ctx context.Context, ref string) (render.Input, error) {
	s.progress.Phase("fetch", 0, 0)
	in, err := s.Source.Fetch(ctx, ref)
	s.progress.Phase("render", 0, 0) // rendering follows a fetch
	if err == nil {
		slog.Info("fetched", "ref", ref, "revision", in.Revision, "path", in.Path)
	}
	return in, err
}

// logged logs the warnings of an API server at level info: they are many, and mostly known.
type logged struct{}

func (logged) HandleWarningHeader(_ int, _, text string) { slog.Info(text, "from", "API server") }

// A tracer logs the requests that pass through it.
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
