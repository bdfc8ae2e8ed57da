package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/scratch"
	"headgate.dev/headgate/render"
)

// ofHeads limits what a head may have beside what its target has. Every user of the forge may open a pull request.
func ofHeads(of git.Limits) git.Limits {
	of.Bytes, of.Objects, of.Unpacked, of.Object = 256<<20, 1<<20, 4<<30, 64<<20
	return of
}

// notACA replaces the CA of a Secret where there is no cluster to read it from, and in previews, which only compare.
const notACA = "read by passes only"

// A previewer previews the pull requests of a Sync. It has a clone of its own, so that no pass waits for it and
// the heads of pull requests stay apart from what passes read.
type previewer struct {
	reconcile.PreviewLoop

	wake   func()
	origin origin
	wired  []*Wired
	temp   scratch.Dir // the directory of its clone, where that is temporary
}

// previewsOf wires the previews of a Sync, or returns nil if it has none. loop is how its loop makes passes, and
// clone the repository that the loop reads.
func previewsOf(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret, loop *Wired, clone *git.Repository) (*previewer, error) {
	if !s.Spec.Previews || s.Spec.Statuses == nil {
		return nil, nil
	}
	account, err := account(s, in, from)
	if err != nil {
		return nil, err
	}
	pulls, err := account.Pulls()
	if err != nil {
		return nil, fmt.Errorf("spec.statuses: %w", err)
	}
	record, err := account.Poster()
	if err != nil {
		return nil, fmt.Errorf("spec.statuses: %w", err)
	}
	rules, err := rulesOf(s, account.Repository)
	if err != nil {
		return nil, err
	}
	previews := forge.Previews{
		Poster: record, Pulls: pulls, Home: v1alpha1.DefaultNamespace, TargetURL: s.Spec.PageURL,
		Sync: loop.Sync, Commands: rules,
	}

	f := new(previewer)
	cache := filepath.Join(in.Cache, "previews")
	if in.Cache == "" {
		if f.temp, err = scratch.New("previews"); err != nil {
			return nil, err
		}
		cache = f.temp.Path
	}
	f.origin = origin{into: secondClone(clone, cache, clone.Limits), heads: secondClone(clone, cache, ofHeads(clone.Limits))}
	over := in
	over.Memo = loop.Options.Memo
	how := How{Fresh: freshTags, Compares: true, Secret: loop.Cluster.Secret}
	if s.Spec.LivePreviews {
		how.Images = loop.Cluster.ImageConfigs
		previews.Cluster = s.Spec.ClusterName
	} else {
		over.Cluster = nil
	}
	wire := func(fork *registry.Fork) (reconcile.Reconciler, error) {
		how.Fork = fork
		w, err := Wire(s, f.origin.heads, over, how)
		if err != nil {
			return reconcile.Reconciler{}, err
		}
		f.wired = append(f.wired, w)
		w.Applier, w.Recorder = nil, nil
		w.Approvals = nil // a requested digest must be visible, also for the approver
		return w.Reconciler, nil
	}
	own, err := wire(nil)
	if err != nil {
		return nil, err
	}
	woken := make(chan struct{}, 1)
	f.wake = func() { notify(woken) }
	f.PreviewLoop = reconcile.PreviewLoop{
		Reconciler: own, Origin: f.origin, Requests: requests{pulls, previews, s.Spec.ForkPreviews != nil}, Ref: s.Spec.Source.Ref,
		Interval: cmp.Or(s.Spec.Source.Interval, s.Spec.Interval).Duration(), Woken: woken, OnEvent: in.Event,
	}
	if allowed := s.Spec.ForkPreviews; allowed != nil {
		// Headgate asks the cluster for nothing on behalf of a fork, but for the signatures that it demands of
		// every package.
		forks, err := wire(&registry.Fork{Registries: allowed.Registries})
		if err != nil {
			return nil, err
		}
		f.Forks = &forks
	}
	if in.Previews != nil {
		err = f.isolate(s, in.Previews)
	}
	return f, err
}

// rulesOf returns whose comments and reviews count on the pull requests of a Sync; nil: none do. It is an error if the Sync asks
// for what the forge cannot tell.
func rulesOf(s v1alpha1.Sync, at forge.Repository) (*forge.Rules, error) {
	a := s.Spec.Approvals
	if a.Comments == v1alpha1.CommentsNever {
		return nil, nil
	}
	rules := &forge.Rules{Approvers: a.Approvers, ByAuthor: a.ByAuthor == v1alpha1.ByAuthorAllow, Reviews: a.Reviews}
	err := at.Kind.Check(*rules)
	switch {
	case err == nil:
		return rules, nil
	case a.Comments == "" && !a.Reviews && !rules.ByAuthor: // the Sync asks for nothing, and a warning says why no comment counts
		return nil, nil
	}
	return nil, fmt.Errorf("spec.approvals: %w; or set comments: Never, and approve in %s", err, render.ApprovalsFile)
}

// unheard returns why no comment approves on the pull requests of a Sync that leaves that to the default; nil if they do.
func unheard(s v1alpha1.Sync, at forge.Repository) error {
	if s.Spec.Approvals.Comments != "" {
		return nil
	}
	err := at.Kind.Check(forge.Rules{Approvers: s.Spec.Approvals.Approvers})
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w in spec.approvals.approvers, or set comments: Never", err)
}

// notify wakes the receiver. If it is busy, it will look anyway.
func notify(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

func (f *previewer) Close() error {
	all := []error{f.origin.into.Close(), f.origin.heads.Close()}
	for _, w := range f.wired {
		all = append(all, w.Close())
	}
	all = append(all, f.temp.Remove())
	return errors.Join(all...)
}

// isolate has previews made in processes of their own.
func (f *previewer) isolate(s v1alpha1.Sync, by *Isolation) error {
	var made []func(ctx context.Context, into, head string) (report.Report, error)
	for i, w := range f.wired {
		var forks *v1alpha1.ForkPreviews
		if i > 0 {
			forks = s.Spec.ForkPreviews
		}
		one, err := by.Previewing(s, f.origin.into, w, forks)
		if err != nil {
			return err
		}
		made = append(made, one)
	}
	f.Elsewhere = func(ctx context.Context, fork bool, into, head string) (report.Report, error) {
		if fork {
			return made[1](ctx, into, head)
		}
		return made[0](ctx, into, head)
	}
	return nil
}

// secondClone returns the repository of a loop with a clone of its own.
func secondClone(of *git.Repository, cache string, limits git.Limits) *git.Repository {
	return &git.Repository{URL: of.URL, Path: of.Path, Cache: cache, Auth: of.Auth, Credentials: of.Credentials, Plain: of.Plain, Limits: limits}
}

// An origin is one repository with two limits: heads may be smaller than their target, which only people with
// push access can enlarge.
type origin struct{ into, heads *git.Repository }

func (o origin) Tip(ctx context.Context, ref string) (branch, commit string, err error) {
	if branch, err = o.into.Branch(ctx, ref); err != nil || branch == "" {
		return "", "", err
	}
	commit, err = o.into.Resolve(ctx, "refs/heads/"+branch)
	return branch, commit, err
}

func (o origin) Resolve(ctx context.Context, ref string) (string, error) {
	return o.heads.Resolve(ctx, ref)
}

func (o origin) MergeBase(ctx context.Context, a, b string) (string, error) {
	return o.heads.MergeBase(ctx, a, b)
}

func (o origin) Forget(ctx context.Context, commit string) error { return o.heads.Forget(ctx, commit) }

// requests are pull requests on a forge.
type requests struct {
	pulls    *forge.Pulls
	previews forge.Previews // of none yet
	forks    bool           // are previewed
}

func (q requests) Open(ctx context.Context) ([]reconcile.Request, error) {
	pulls, err := q.pulls.Open(ctx)
	var open []reconcile.Request
	for _, p := range pulls {
		open = append(open, reconcile.Request(p))
	}
	return open, err
}

func (q requests) Publisher(of reconcile.Request) reconcile.PreviewPublisher {
	previews := &forge.Previews{}
	*previews = q.previews
	previews.Pull = forge.Pull(of)
	if of.Fork && !q.forks {
		previews.Pulls = nil // there is nothing to comment on
	}
	return previews
}
