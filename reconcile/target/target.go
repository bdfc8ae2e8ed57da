// Package target makes of a Sync what carries it out: a Reconciler, a Loop and who is told.
// Besides cmd it is the only place that names adapters. What a pass does is up to package
// reconcile, and what a Sync may say to its api.
//
//	Sync ─Reconciler─► how to pass ─┐
//	     git, cluster, forge, outbox┴─New─► Target ─Run─► a Loop that runs
package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/reconcile/outbox"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"k8s.io/client-go/rest"
)

// Surroundings are what a Sync does not say.
type Surroundings struct {
	Cluster *rest.Config
	Getenv  func(string) string // os.Getenv if nil
	// Approvals are asked before every plan for the digests that a person gave; nil: those of
	// the Sync count.
	Approvals func() inventory.Approvals
	Cache     string // a directory for clones, and for statuses that wait; "" is a temporary one, and memory
	// KeyFiles are files of public keys by what an ImageConfig calls them, as "secret/key": they count
	// before the Secrets, also for forks, for which none is read.
	KeyFiles map[string]string
	// TrustedRoot is a file to verify the identities with that sign packages; "" is none.
	TrustedRoot string
	Memo        manifest.Memo         // what was learnt of files, for all Syncs together; nil is one for this Sync
	Event       func(reconcile.Event) // hears what the loop does, also while it does it; nil is nobody
	Done        func(cluster.Event)   // hears how far a pass is; nil is nobody
	Secret      func(value string)    // hears what is read of Secrets and must never be written anywhere; nil is nobody
}

// A Target is a Sync with all that it takes to carry it out.
type Target struct {
	Loop reconcile.Loop

	repository *git.Repository
	packages   *registry.Source
	outbox     *outbox.Outbox // nil where nothing is posted
	follower   *follower      // nil where no pull requests are previewed
	subscriber func() (*forge.Subscriber, error)
}

// Reconciler is how passes of a valid Sync are made, without where from and where to.
func Reconciler(s v1alpha1.Sync) reconcile.Reconciler {
	spec := s.Spec
	r := reconcile.Reconciler{
		Options: render.Options{
			Owner:      render.Owner(spec.CRDOwner),
			Conversion: conversion(spec.Conversion),
			Others:     catalogue.Others(spec.Others),
			Limits: manifest.Limits{
				FileBytes:  spec.Limits.FileSize.Bytes(),
				TotalBytes: spec.Limits.TotalSize.Bytes(),
				Documents:  spec.Limits.Documents,
				Depth:      spec.Limits.Depth,
			},
			CrossplaneVersion: spec.CrossplaneVersion,
			Packages:          declared(spec.Packages),
		},
		Guarding: guard.Guarding{
			MaxPrunes:      or0(spec.MaxPrunes),
			MaxActivations: or0(spec.MaxActivations),
			PruneInstances: spec.Instances == v1alpha1.InstancesPrune,
			ReportDrift:    spec.Drift == v1alpha1.DriftReport,
			OwnerIsSet:     spec.CRDOwner != v1alpha1.OwnerAuto,
		},
		Terms:   terms(spec),
		Sync:    inventory.Sync{Namespace: s.Namespace, Name: s.Name},
		Live:    spec.Catalogue == v1alpha1.CatalogueLive,
		Timeout: spec.Timeout.Duration(),
	}
	r.Approvals = func() inventory.Approvals { return inventory.Approvals{inventory.OnSync: s.Approvals()} }
	return r
}

func terms(spec v1alpha1.Spec) plan.Terms {
	t := plan.Terms{Adoption: adoptions[spec.Adoption], Take: spec.Conflicts == v1alpha1.ConflictsTake, TakeBack: spec.Deactivation == v1alpha1.DeactivationWhenUnused, TakeOver: spec.Source.TakeOver}
	for _, rule := range spec.Ignore {
		i := diff.Ignore{
			Group: whole(rule.Target.Group), Kind: whole(rule.Target.Kind),
			Namespace: whole(rule.Target.Namespace), Name: whole(rule.Target.Name),
		}
		for _, path := range rule.Paths {
			i.Paths = append(i.Paths, diff.PointerOf(path))
		}
		t.Ignore = append(t.Ignore, i)
	}
	return t
}

// whole is a valid pattern that has to fit all of a text, as selectors of Flux have to.
func whole(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	return regexp.MustCompile("^(?:" + pattern + ")$")
}

var adoptions = map[v1alpha1.Adoption]plan.Adoption{
	v1alpha1.AdoptIfUnowned: plan.AdoptUnowned,
	v1alpha1.AdoptRefuse:    plan.AdoptNone,
	v1alpha1.AdoptAll:       plan.AdoptAll,
}

func or0(n *int) int {
	if n == nil {
		return 0 // the default
	}
	return *n
}

func declared(packages []v1alpha1.Package) []catalogue.Declared {
	var made []catalogue.Declared
	for _, p := range packages {
		made = append(made, catalogue.Declared{Path: p.Path, Name: p.Name, SafeStart: p.SafeStart != nil && *p.SafeStart})
	}
	return made
}

func conversion(c v1alpha1.Conversion) render.Conversion {
	made := render.Conversion{CABundle: []byte(c.CABundle)}
	if c.Strategy != v1alpha1.ConversionSafe {
		made.Strategy = render.ConversionStrategy(c.Strategy)
	}
	if c.Service != nil {
		made.Namespace, made.Service, made.Port = c.Service.Namespace, c.Service.Name, c.Service.Port
	}
	return made
}

// A Place is a cluster as a Sync sees it, beside its passes.
type Place interface {
	reconcile.Watcher
	Secret(ctx context.Context, name string) (map[string][]byte, error)
	Packages(ctx context.Context) ([]crossplane.Installed, error)
	ImageConfigs(ctx context.Context) ([]packages.LiveConfig, error)
}

// Reach is how passes of a valid Sync are made over a cluster, without where from. It sends
// no request.
func Reach(s v1alpha1.Sync, to *rest.Config, how cluster.Options) (reconcile.Reconciler, Place, error) {
	r := Reconciler(s)
	how.Timeout, how.FullCheck, how.Terms = cmp.Or(how.Timeout, r.Timeout), s.Spec.FullCheckInterval.Duration(), r.Terms
	r.Timeout = how.Timeout
	if s.Spec.ManagementPolicy == v1alpha1.PolicyObservable {
		l, err := cluster.NewLooker(to, r.Sync, how)
		r.Observer, r.Place = l, l
		return r, l, err
	}
	c, err := cluster.New(to, r.Sync, how)
	r.Observer, r.Applier, r.Place, r.Recorder = c, c, c, c
	return r, c, err
}

// freshTags is how long a loop takes the tag of a package for the image that it was. Crossplane
// does not look again at all, by default.
const freshTags = 10 * time.Minute

// New wires a valid Sync. It sends no request. Its errors name fields of the Sync.
func New(s v1alpha1.Sync, in Surroundings) (*Target, error) {
	if in.Getenv == nil {
		in.Getenv = os.Getenv
	}
	r, place, err := Reach(s, in.Cluster, cluster.Options{Progress: in.Done})
	if err != nil {
		return nil, err
	}
	t := &Target{Loop: reconcile.Loop{
		Reconciler: r,
		Watcher:    place,
		Ref:        s.Spec.Source.Ref,
		Suspended:  s.Spec.Suspend,
		Interval:   s.Spec.Interval.Duration(),
		Poll:       s.Spec.Source.Interval.Duration(),
		Tell:       in.Event,
	}}
	if in.Approvals != nil {
		t.Loop.Reconciler.Approvals = in.Approvals
	}
	t.Loop.Reconciler.Options.Memo = in.Memo
	if in.Memo == nil {
		t.Loop.Reconciler.Options.Memo = new(memo.Memory)
	}

	from := func(field string, ref *v1alpha1.SecretRef) *secret {
		if ref == nil {
			return nil
		}
		return &secret{field: field, namespace: s.Namespace, ref: *ref, read: place.Secret, tell: in.Secret}
	}
	auth, repository := auth(s, in.Getenv)
	statuses, post := publisher(s, in, from)
	if err := errors.Join(repository, post); err != nil {
		return nil, err
	}
	if ca := from("spec.conversion.caFrom", s.Spec.Conversion.CAFrom); ca != nil {
		t.Loop.Reconciler.CA = ca.ca
	}
	t.repository = &git.Repository{
		URL: s.Spec.Source.Repo, Path: s.Spec.Source.Path, Cache: in.Cache, Auth: auth,
		Limits: git.Limits{Time: s.Spec.Source.FetchTimeout.Duration()},
	}
	if source := from("spec.source.credentialsFrom.secretRef", s.Spec.Source.CredentialsFrom.SecretRef); source != nil {
		t.repository.Credentials = source.credentials
	} else if t.repository.Credentials, err = asApp(s, in, from, auth); err != nil {
		return nil, err
	}
	t.packages = &registry.Source{Next: t.repository, How: t.Loop.Reconciler.Options, Fresh: freshTags, Installed: place.Packages, Images: place.ImageConfigs, Secret: place.Secret, Hide: in.Secret, KeyFiles: in.KeyFiles, TrustedRoot: in.TrustedRoot}
	t.packages.Cache = packageCache(in)
	t.Loop.Reconciler.Source = t.packages
	if t.follower, err = follow(s, in, from, place, t.Loop.Reconciler, t.repository); err != nil {
		return nil, err
	}
	if statuses != nil {
		t.outbox = statuses
		t.Loop.Publisher = statuses
	}
	pushed := make(chan struct{}, 1)
	t.Loop.Pushed = pushed
	t.subscriber = func() (*forge.Subscriber, error) {
		hears, err := subscriber(s, in, from, func() { nudge(pushed) })
		if hears != nil && t.follower != nil {
			hears.WakePulls = t.follower.wake
		}
		return hears, err
	}
	return t, nil
}

// packageCache is where packages are kept; "" is nowhere.
func packageCache(in Surroundings) string {
	if in.Cache == "" {
		return ""
	}
	return filepath.Join(in.Cache, "packages")
}

// Subscriber is how a push wakes the loop, or nil where the Sync has no webhook.
func (t *Target) Subscriber() (*forge.Subscriber, error) { return t.subscriber() }

// Run runs the loop until ctx is done, and with it what is said of its passes, and previews.
func (t *Target) Run(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	if t.outbox != nil {
		beside.Go(func() { t.outbox.Run(ctx) })
	}
	if t.follower != nil && !t.Loop.Suspended {
		beside.Go(func() { t.follower.Run(ctx) })
	}
	t.Loop.Run(ctx)
}

// Once makes one pass, and says what it came to.
func (t *Target) Once(ctx context.Context) (report.Report, error) { return t.Loop.Once(ctx) }

// Close removes what is temporary.
func (t *Target) Close() error {
	err := errors.Join(t.repository.Close(), t.packages.Close())
	if t.follower != nil {
		err = errors.Join(err, t.follower.Close())
	}
	return err
}

// Secrets are the values of the environment that must never be written anywhere.
func Secrets(s v1alpha1.Sync, getenv func(string) string) []string {
	var names, values []string
	if from := s.Spec.Source.CredentialsFrom; from != nil && from.Env != nil {
		names = append(names, from.Env.Password)
	}
	if to := s.Spec.Statuses; to != nil && to.TokenFrom != nil && to.TokenFrom.Env != "" {
		names = append(names, to.TokenFrom.Env)
	}
	if to := s.Spec.Statuses; to != nil && to.App != nil && to.App.PrivateKeyFrom.Env != "" {
		names = append(names, to.App.PrivateKeyFrom.Env)
	}
	if hook := s.Spec.Source.Webhook; hook != nil && hook.SecretFrom.Env != "" {
		names = append(names, hook.SecretFrom.Env)
	}
	for _, name := range names {
		if value := strings.TrimSpace(getenv(name)); value != "" {
			values = append(values, value)
		}
	}
	return values
}

// auth are the credentials of the repository. That there are none is fine where nobody
// named them.
func auth(s v1alpha1.Sync, getenv func(string) string) (git.Auth, error) {
	from := s.Spec.Source.CredentialsFrom
	if from == nil || from.Env == nil {
		return git.Auth{}, nil
	}
	a := git.Auth{Username: getenv(from.Env.Username), Password: getenv(from.Env.Password)}
	if a.Password == "" && from.Env.Password != v1alpha1.DefaultPasswordEnv {
		return a, fmt.Errorf("spec.source.credentialsFrom.env.password: the environment has no %s", from.Env.Password)
	}
	return a, nil
}

// tokenOf is how to get the token of a field.
func tokenOf(field string, spec v1alpha1.Token, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret) (func(context.Context) (string, error), error) {
	if secret := from(field+".secretRef", spec.SecretRef); secret != nil {
		return secret.token, nil
	}
	token := strings.TrimSpace(in.Getenv(spec.Env))
	if token == "" {
		return nil, fmt.Errorf("%s.env: the environment has no %s", field, spec.Env)
	}
	return forge.Token(token), nil
}

// subscriber follows the ref of a Sync, or is nil where that has no webhook.
func subscriber(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret, wake func()) (*forge.Subscriber, error) {
	spec := s.Spec.Source.Webhook
	if spec == nil {
		return nil, nil
	}
	secret, err := tokenOf("spec.source.webhook.secretFrom", *spec.SecretFrom, in, from)
	if err != nil {
		return nil, err
	}
	if spec.SecretFrom.SecretRef != nil {
		secret = recent(secret, func(err error) {
			if in.Event != nil {
				in.Event(reconcile.Event{Kind: reconcile.Deaf, Err: err})
			}
		})
	}
	names := []string{s.Spec.Source.Repo}
	if s.Spec.Statuses != nil && s.Spec.Statuses.Repository != "" {
		names = append(names, s.Spec.Statuses.Repository) // commits may come from a mirror
	}
	return &forge.Subscriber{Secret: secret, Repositories: names, Ref: s.Spec.Source.Ref, Wake: wake}, nil
}

// publisher posts the statuses of a Sync, or is nil where it has none.
func publisher(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret) (*outbox.Outbox, error) {
	if s.Spec.Statuses == nil {
		return nil, nil
	}
	account, err := account(s, in, from)
	if err != nil {
		return nil, err
	}
	poster, err := account.Poster()
	if err != nil {
		return nil, fmt.Errorf("spec.statuses: %w", err)
	}
	box := &outbox.Outbox{Next: forge.Statuses{
		Poster: poster, Cluster: s.Spec.ClusterName, Home: v1alpha1.DefaultNamespace, TargetURL: s.Spec.PageURL,
	}}
	if in.Cache != "" {
		box.Dir = filepath.Join(in.Cache, "outbox", s.Spec.ClusterName, s.Namespace+"."+s.Name)
	}
	if in.Event != nil {
		box.Tell = func(err error) { in.Event(reconcile.Event{Kind: reconcile.Unsaid, Err: err}) }
	}
	return box, nil
}

// account is who speaks for a Sync on its forge.
func account(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret) (forge.Account, error) {
	repository, err := repositoryOf(s.Spec)
	if err != nil {
		return forge.Account{}, fmt.Errorf("spec.statuses: %w", err)
	}
	app := s.Spec.Statuses.App
	if app == nil {
		token, err := tokenOf("spec.statuses.tokenFrom", *s.Spec.Statuses.TokenFrom, in, from)
		return forge.Account{Repository: repository, Token: token}, err
	}
	at := *app.PrivateKeyFrom
	if ref := at.SecretRef; ref != nil {
		at.SecretRef = &v1alpha1.SecretRef{Name: ref.Name, Key: cmp.Or(ref.Key, privateKeyKey)}
	}
	key, err := tokenOf("spec.statuses.app.privateKeyFrom", at, in, from)
	token, none := forge.App{ID: app.ID, Installation: app.Installation, Key: key}.Token(repository, nil)
	if none != nil {
		return forge.Account{}, fmt.Errorf("spec.statuses.app: %w; use tokenFrom", none)
	}
	return forge.Account{Repository: repository, Token: token}, err
}

// asApp is how the App of a Sync reads its repository, where that is on the forge of the App; nil
// where it has none, or something else says how.
func asApp(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret, said git.Auth) (func(context.Context) (git.Auth, error), error) {
	if s.Spec.Statuses == nil || s.Spec.Statuses.App == nil || said != (git.Auth{}) {
		return nil, nil
	}
	account, err := account(s, in, from)
	if err != nil || !strings.HasPrefix(s.Spec.Source.Repo, account.Repository.Base+"/") {
		return nil, err
	}
	return func(ctx context.Context) (git.Auth, error) {
		token, err := account.Token(ctx)
		return git.Auth{Username: account.Repository.AppUser(), Password: token}, err
	}, nil
}

// repositoryOf is where statuses are posted: where commits come from, but for what the Sync
// says otherwise.
func repositoryOf(spec v1alpha1.Spec) (forge.Repository, error) {
	said := spec.Statuses
	kind := kinds[said.Forge]
	var r forge.Repository
	var err error
	if said.URL == "" || said.Repository == "" {
		if r, err = forge.RepositoryOf(spec.Source.Repo, kind); err != nil {
			return r, fmt.Errorf("%w; say url and repository", err)
		}
	}
	if said.URL != "" || said.Repository != "" {
		if said.URL == "" {
			kind = r.Kind
		}
		if r, err = forge.RepositoryAt(cmp.Or(said.URL, r.Base), cmp.Or(said.Repository, r.String()), kind); err != nil {
			return r, err
		}
	}
	if r.Kind == "" {
		return r, fmt.Errorf("nobody can tell what forge %s is; say forge: %s", r.Base, v1alpha1.Either(v1alpha1.Forges))
	}
	return r, nil
}
