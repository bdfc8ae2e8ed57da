package target

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/audit"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/disk"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/health"
	"headgate.dev/headgate/reconcile/impact"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/reconcile/trace"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"k8s.io/client-go/rest"
)

// Surroundings hold what passes need in addition to the Sync. The zero value has no cluster, asks registries, and remembers nothing
// between passes.
type Surroundings struct {
	Cluster *rest.Config        // nil if passes have no cluster
	Secrets *rest.Config        // the cluster with the Secrets of the Sync; nil if it is Cluster
	Getenv  func(string) string // os.Getenv if nil
	// Approvals returns the digests that people approved. Headgate calls it before every plan. If it is nil, the approvals in the
	// Sync count.
	Approvals func() approval.Given
	Cache     string       // a directory for clones and waiting statuses; "" uses a temporary directory, and memory
	Packages  string       // a directory for packages; "" uses one in Cache
	Budget    *disk.Budget // of Cache; nil bounds nothing
	// KeyFiles are files with public keys, by their names in an ImageConfig, such as "secret/key". They take precedence over
	// Secrets. Headgate also uses them for forks, for which it reads no Secrets.
	KeyFiles map[string]string
	// TrustedRoot is a file for verifying the identities that sign packages; "" for none.
	TrustedRoot string
	Plain       network.Plain    // hosts that get credentials without TLS
	Offline     bool             // send no requests to registries
	Unlocked    bool             // also ask registries about locked packages
	Peers       *reconcile.Peers // the syncs of this process; nil if there is only this one
	Shares      *cluster.Shares  // what the syncs of this process share in a cluster; nil shares nothing
	// Apart identifies the cluster of the Sync, by any of its addresses; "" is that of the process, and reconcile.AnyCluster is not known.
	Apart  string
	Own    string        // the namespace of the controller, which no Sync prunes; "" for headgate-system
	Audit  *audit.Log    // records what people let passes do beyond the guards; nil records nothing
	Term   cluster.Term  // in which this process leads others; the zero value if nobody is elected
	Boards *Boards       // what the Syncs of this process with contexts: Cluster post together; nil if there is only this one
	Clones *git.Shared   // what the syncs of this process share of their repositories; nil shares nothing
	Queue  *engine.Queue // runs the passes of all syncs of this process; nil if there is only this one
	// Remotes look for new commits for the syncs of this process; nil if there is only this one.
	Remotes *reconcile.Remotes
	// PullRequests previews the pull requests of all Syncs of this process; nil if there is only this Sync.
	PullRequests *PullRequests
	// Hooks are the webhooks of this process, at a path for each namespace. If it is nil, the process wakes a Sync by its Subscriber.
	Hooks    *forge.Webhooks
	Memo     manifest.Memo         // caches facts about files for several Syncs; nil for one per Sync if it has a cluster
	Previews *Isolation            // how previews of pull requests run in processes of their own; nil previews them in this process
	Tracer   *trace.Tracer         // makes a trace of each pass; nil makes none
	Event    func(reconcile.Event) // receives what the loop does, as it happens; may be nil
	Done     func(cluster.Event)   // receives the progress of a pass; may be nil
	Secret   func(value string)    // receives values of Secrets that must never be written anywhere; may be nil
}

// A Cluster is what a Sync reads and watches in its cluster, in addition to the observations of its passes.
type Cluster interface {
	reconcile.Watcher
	Ready(ctx context.Context) error
	Secret(ctx context.Context, name string) (map[string][]byte, error)
	Packages(ctx context.Context) ([]crossplane.Installed, error)
	ImageConfigs(ctx context.Context) ([]packages.LiveConfig, error)
}

// How describes the differences between passes of one Sync.
type How struct {
	Cluster cluster.Options
	// Fresh is how long the image that a tag was resolved to is used; 0 resolves a tag once per process. It is set for loops, whose
	// commits record what is read of them.
	Fresh time.Duration
	// Compares is set if commits are only compared with each other, and so need no signatures.
	Compares bool
	// Keeps is set if commits are only compared, and packages that cannot be pulled are read from copies in the commits.
	Keeps bool
	// Fork sets limits for commits of a fork, for which passes do not ask the cluster.
	Fork *registry.Fork
	// Secret and Images read from a cluster on behalf of packages although passes have none; may be nil.
	Secret func(ctx context.Context, name string) (map[string][]byte, error)
	Images func(ctx context.Context) ([]packages.LiveConfig, error)
}

// A Wired is a Sync that is ready for passes.
type Wired struct {
	reconcile.Reconciler

	Cluster  Cluster            // nil without a cluster
	leave    func()             // leaves the other syncs of the process; nil if it shares nothing with them
	packages *registry.Resolver // nil without a source

	images func(ctx context.Context) ([]packages.Locked, error) // that the sync applied; nil if it applies nothing
}

// Tags returns the versions of a package in its registry.
func (w *Wired) Tags(ctx context.Context, of packages.Request) ([]string, error) {
	return w.packages.Versions(ctx, of)
}

// Wire returns a Wired that makes passes of a valid Sync over commits of a source, with the packages that they mention, and over
// the cluster of its surroundings. Verbs, loops and previews all use Wire. A nil source is for passes without a commit. Wire sends
// no request.
func Wire(s v1alpha1.Sync, from reconcile.Source, in Surroundings, how How) (*Wired, error) {
	noCA := s.Spec.Conversion.CAFrom != nil && (in.Cluster == nil || how.Compares || how.Fork != nil)
	if noCA {
		s.Spec.Conversion.CABundle = notACA
	}
	var err error
	if how.Cluster.Health, err = health.Compile(s.Spec.HealthCheckExprs); err != nil {
		return nil, err
	}
	set := settingsOf(s)
	w := &Wired{Reconciler: set.Reconciler}
	w.Guarding.Home = in.Own
	if in.Approvals != nil {
		w.Approvals = in.Approvals
	}
	w.Options.Memo, w.Options.Unlocked = in.Memo, in.Unlocked
	if how.Fork != nil && w.Options.Limits.TotalNodes == 0 {
		w.Options.Limits.TotalNodes = manifest.ForkNodes
	}
	if in.Cluster != nil && how.Fork == nil {
		if in.Memo == nil {
			w.Options.Memo = new(memo.Memory) // a pass renders several times
		}
		if err := w.reach(s, set.observes, in.Cluster, how.Cluster); err != nil {
			return nil, err
		}
		if w.Applier != nil {
			w.Applier = in.Audit.Around(w.Applier)
		}
		if err := w.secretsFrom(in.Secrets); err != nil {
			return nil, err
		}
	}
	if ref := s.Spec.Conversion.CAFrom; ref != nil && !noCA {
		w.CA = secret{field: "spec.conversion.caFrom", namespace: s.Namespace, ref: *ref, read: w.Cluster.Secret, tell: in.Secret}.ca
	}
	if from == nil {
		return w, nil
	}
	if err := w.verify(s, from, set.signed, how); err != nil {
		return nil, err
	}
	next := from
	if how.Fresh > 0 {
		next = reconcile.Recorded{Source: from}
	}
	w.packages = &registry.Resolver{
		Next: next, How: w.Options, Fresh: how.Fresh, Tags: how.Compares, Keeps: how.Compares || how.Keeps, Fork: how.Fork, Secret: how.Secret, Images: how.Images,
		Hide: in.Secret, KeyFiles: in.KeyFiles, TrustedRoot: in.TrustedRoot, Offline: in.Offline, Cache: in.Packages,
	}
	if in.Packages == "" && in.Cache != "" {
		w.packages.Cache, w.packages.Budget = filepath.Join(in.Cache, "packages"), in.Budget
	}
	if w.Cluster != nil {
		w.packages.Secret, w.packages.Images, w.packages.Installed = w.Cluster.Secret, w.Cluster.ImageConfigs, w.Cluster.Packages
	}
	w.packages.Applied = w.images
	w.Source = w.packages
	return w, nil
}

// WireFork returns a Wired for the commits of a fork. On their behalf, Headgate asks the cluster of own only for ImageConfigs, which
// demand signatures of packages.
func WireFork(s v1alpha1.Sync, from reconcile.Source, in Surroundings, how How, own *Wired, allowed v1alpha1.ForkPreviews) (*Wired, error) {
	how.Fork = &registry.Fork{Registries: allowed.Registries}
	if own.Cluster != nil {
		how.Images = own.Cluster.ImageConfigs
	}
	return Wire(s, from, in, how)
}

// headsOf returns the Source for heads of pull requests: it reaches what the target names and the listed registries.
func (w *Wired) headsOf(spec v1alpha1.Spec) func(ctx context.Context, target packages.Named) (reconcile.Source, error) {
	return func(ctx context.Context, target packages.Named) (reconcile.Source, error) {
		return w.packages.Head(ctx, target, listed(spec))
	}
}

// listed returns the registries that every head may name. What forks may name, others may, too.
func listed(spec v1alpha1.Spec) []string {
	all := spec.PreviewRegistries
	if spec.ForkPreviews != nil {
		all = slices.Concat(all, spec.ForkPreviews.Registries)
	}
	return all
}

// verify sets which signatures commits need.
func (w *Wired) verify(s v1alpha1.Sync, from reconcile.Source, needs signed, how How) error {
	const field = "spec.source.verify."
	of := s.Spec.Source.Verify
	if err := git.Keys(of.Keys).Validate(); err != nil {
		return fmt.Errorf("%skeys: %w", field, err)
	}
	if needs == (signed{}) || how.Compares {
		return nil
	}
	r, ok := from.(*git.Repository)
	if !ok {
		return fmt.Errorf("%smode: a directory has no signature; name a commit, with --ref or --repo", field)
	}
	r.Verify = git.Verification{Commit: needs.commit, Tag: needs.tag, Keys: of.Keys}
	switch {
	case of.KeysFrom == nil:
	case w.Cluster == nil:
		return fmt.Errorf("%skeysFrom: there is no cluster to read it from", field)
	default:
		r.Verify.More = secret{field: field + "keysFrom", namespace: s.Namespace, ref: *of.KeysFrom, read: w.Cluster.Secret}.keys
	}
	return nil
}

// reach connects passes to a cluster.
func (w *Wired) reach(s v1alpha1.Sync, observes bool, to *rest.Config, how cluster.Options) error {
	how.Timeout, how.FullCheck, how.Terms = cmp.Or(how.Timeout, w.Timeout), s.Spec.FullCheckInterval.Duration(), w.Terms
	w.Timeout, w.NoWait = how.Timeout, how.NoWait
	if observes {
		l, err := cluster.NewLooker(to, w.Sync, how)
		w.Observer, w.Reconciler.Cluster, w.Cluster = l, l, l
		w.Waiter = l
		return err
	}
	c, err := cluster.New(to, w.Sync, how)
	if err != nil {
		return err
	}
	w.leave = c.Close
	w.Observer, w.Applier, w.Reconciler.Cluster, w.Recorder, w.Cluster, w.Waiter = c, c, c, c, c, c
	w.Owned, w.images = c.Owned, c.AppliedImages
	w.Applied = func(ctx context.Context) (string, error) {
		inv, err := c.Inventory(ctx)
		return inv.Record.Source.Commit, err
	}
	return nil
}

// A withSecrets is a cluster to which a Sync applies, and another one with its Secrets.
type withSecrets struct {
	Cluster

	secret func(ctx context.Context, name string) (map[string][]byte, error)
}

// Secret reads a Secret beside the Sync.
func (r withSecrets) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	return r.secret(ctx, name)
}

// secretsFrom makes passes read Secrets from another cluster than theirs; nil is theirs.
func (w *Wired) secretsFrom(config *rest.Config) error {
	if config == nil {
		return nil
	}
	secret, err := cluster.Secrets(config, w.Sync)
	if err != nil {
		return err
	}
	w.Cluster = withSecrets{w.Cluster, secret}
	return nil
}

// Close removes temporary files, and leaves the other syncs of the process.
func (w *Wired) Close() error {
	if w.leave != nil {
		w.leave()
	}
	if w.packages == nil {
		return nil
	}
	return w.packages.Close()
}

// settingsOf returns the settings for passes of a valid Sync.
func settingsOf(s v1alpha1.Sync) settings {
	spec := &s.Spec
	set := settings{Reconciler: reconcile.Reconciler{
		Sync:    NameOf(s),
		Timeout: spec.Timeout.Duration(), Suspended: spec.Suspended(),
		Options: render.Options{
			Conversion:        conversion(spec.Conversion),
			CrossplaneVersion: spec.CrossplaneVersion,
			KubernetesVersion: spec.KubernetesVersion,
			Schemas:           spec.Schemas,
			Packages:          declared(spec.Packages),
			Limits: manifest.Limits{
				FileBytes:  spec.Limits.FileSize.Bytes(),
				TotalBytes: spec.Limits.TotalSize.Bytes(),
				Documents:  spec.Limits.Documents,
				Depth:      spec.Limits.Depth,
				Nodes:      spec.Limits.Nodes,
				TotalNodes: spec.Limits.TotalNodes,
			},
		},
		Guarding: guard.Guarding{OwnerIsSet: spec.CRDOwner != v1alpha1.OwnerAuto, AllowedKinds: allowedKinds(spec.AllowedKinds), Activation: activation(spec.Activation), Trust: trusted(spec.PreviewTrust)},
		Terms: facts.Terms{
			Object: string(s.UID), TakeOver: spec.Source.TakeOver, Ignore: ignored(spec.Ignore), Release: spec.Release,
			NoSecrets: spec.References.FromSecrets != nil && !*spec.References.FromSecrets,
			Reads:     guard.Reads(allowedKinds(spec.AllowedKinds), spec.References.Namespaces),
		},
		Approvals: func() approval.Given { return approval.Given{inventory.OnSync: OnSync(s)} },
	}}
	for _, o := range Options {
		o.apply(spec, &set)
	}
	set.Terms.Trailers = set.Terms.Trailers || len(spec.Approvals.Signers) > 0
	return set
}

func allowedKinds(listed []v1alpha1.AllowedKind) []guard.AllowedKind {
	var all []guard.AllowedKind
	for _, k := range listed {
		all = append(all, guard.AllowedKind{Group: k.Group, Kind: k.Kind, Cluster: k.Scope == v1alpha1.ScopeCluster, Namespaces: k.Namespaces, Names: k.Names})
	}
	return all
}

// trusted returns the rules of a list; nil, which means the default, only if there is no list.
func trusted(listed []v1alpha1.PreviewTrust) []impact.Trust {
	if listed == nil {
		return nil
	}
	all := []impact.Trust{}
	for _, t := range listed {
		all = append(all, impact.Trust{Kind: t.Kind, Bump: impact.Bump(t.Bump)})
	}
	return all
}

func activation(a *v1alpha1.Activation) guard.ActivationLimit {
	if a == nil {
		return guard.ActivationLimit{}
	}
	return guard.ActivationLimit{Set: true, Allow: a.Allow}
}

func ignored(rules []v1alpha1.Ignore) []diff.Ignore {
	var all []diff.Ignore
	for _, rule := range rules {
		i := diff.Ignore{
			Group: anchored(rule.Target.Group), Kind: anchored(rule.Target.Kind),
			Namespace: anchored(rule.Target.Namespace), Name: anchored(rule.Target.Name),
		}
		for _, path := range rule.Paths {
			i.Paths = append(i.Paths, diff.PointerOf(path))
		}
		all = append(all, i)
	}
	return all
}

// anchored returns a valid pattern that matches only a whole text, as in Flux's selectors.
func anchored(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	return regexp.MustCompile("^(?:" + pattern + ")$")
}

func declared(all []v1alpha1.Package) []catalogue.Declared {
	var made []catalogue.Declared
	for _, p := range all {
		made = append(made, catalogue.Declared{Path: p.Path, Name: p.Name, SafeStart: p.SafeStart != nil && *p.SafeStart})
	}
	return made
}

func conversion(c v1alpha1.Conversion) render.Conversion {
	made := render.Conversion{CABundle: []byte(c.CABundle)}
	if c.Service != nil {
		made.Namespace, made.Service, made.Port = c.Service.Namespace, c.Service.Name, c.Service.Port
	}
	return made
}
