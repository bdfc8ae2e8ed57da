package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/scratch"
	"headgate.dev/headgate/render"
)

// ofHeads returns the limits for a head in addition to its target. Every user of the forge may open a pull request.
func ofHeads(of git.Limits) git.Limits {
	of.Bytes, of.Objects, of.Unpacked, of.Object = 256<<20, 1<<20, 4<<30, 64<<20
	return of
}

// notACA replaces the CA from a Secret if there is no cluster to read it from, and in previews, which only compare.
const notACA = "read by passes only"

// PullRequests follows the pull requests of all Syncs of a process. Each pull request of a repository has one comment and one
// status for all Syncs that post for the same cluster. The zero value is ready to use.
type PullRequests struct {
	// Name is set in a process that makes no passes. It previews for all of its Syncs, whatever their clusters, with one comment
	// and one status of this name.
	Name string

	mu     sync.Mutex
	groups map[pullRequestsOf]*previewer
}

// A pullRequestsOf identifies what shares comments and statuses. The cluster is part of it because other processes post for other
// clusters, and no process knows the Syncs of another one.
type pullRequestsOf struct {
	repository string // base, owner and name
	cluster    string
	sync       inventory.Sync // set for Syncs with comments of their own
}

// A previewer previews the pull requests of a repository for the Syncs that joined it.
type previewer struct {
	reconcile.PreviewLoop

	wake     func()
	previews *forge.Previews // without the pull request
	forks    bool            // pull requests from forks are previewed
	first    *follower       // runs the loop
	caches   map[string]*follower
}

// A follower is the part of one Sync in the previews of its repository. It has its own clone, so that no pass waits for it and the
// heads of pull requests stay separate from the commits that passes read.
type follower struct {
	of     *previewer
	sync   reconcile.PreviewedSync
	origin origin
	wired  []*Wired
	temp   scratch.Dir // the directory of its clone, if that is temporary
	cache  string
}

// previewsOf wires the previews of a Sync. It returns nil if the Sync has none. loop makes the passes of the Sync, and clone is the
// repository that they read.
func previewsOf(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret, loop *Wired, clone *git.Repository) (*follower, error) {
	if in.onlyPreviews() {
		if s.Spec.Previews {
			return nil, errors.New("spec.previews: the process of its cluster would comment on the same pull requests; leave it out for a process with --previews, here and in the cluster")
		}
		s.Spec.Previews = true // without livePreviews: the cluster of the process is not that of the Sync
	}
	if !s.Spec.Previews || s.Spec.Statuses == nil {
		return nil, nil
	}
	account, err := account(s, in, from)
	if err != nil {
		return nil, err
	}
	all := in.PullRequests
	if all == nil {
		all = new(PullRequests)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	rules, err := rulesOf(s, account.Repository)
	if err != nil {
		return nil, err
	}
	group, err := all.group(s, account, in)
	if err != nil {
		return nil, err
	}
	f := &follower{of: group}
	if first := group.caches[clone.URL]; first != nil {
		f.cache = first.cache
	} else if f.cache = filepath.Join(in.Cache, "previews"); in.Cache == "" {
		if f.temp, err = scratch.New("previews"); err != nil {
			return nil, err
		}
		f.cache = f.temp.Path
	}
	f.origin = origin{into: secondClone(clone, f.cache, clone.Limits), heads: secondClone(clone, f.cache, ofHeads(clone.Limits))}
	over := in
	over.Memo = loop.Options.Memo
	how := How{Fresh: freshTags, Compares: true, Secret: loop.Cluster.Secret}
	if s.Spec.LivePreviews {
		how.Images = loop.Cluster.ImageConfigs
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
		if fork == nil {
			w.Heads = w.headsOf(s.Spec)
		}
		w.Approvals = nil // count no approvals: the requested digest must stay visible, even for the approver
		return w.Reconciler, nil
	}
	own, err := wire(nil)
	if err != nil {
		return nil, err
	}
	f.sync = reconcile.PreviewedSync{Reconciler: own, Origin: f.origin, Ref: s.Spec.Source.Ref}
	if first := group.caches[clone.URL]; first != nil {
		f.sync.Origin = first.origin
	}
	if allowed := s.Spec.ForkPreviews; allowed != nil {
		// On behalf of a fork, Headgate asks the cluster for nothing except the signatures that it demands of every package.
		forks, err := wire(&registry.Fork{Registries: allowed.Registries})
		if err != nil {
			return nil, err
		}
		f.sync.Forks = &forks
	}
	if in.Previews != nil {
		if err := f.isolate(s, in.Previews); err != nil {
			return nil, err
		}
	}
	group.join(f, s, clone.URL, rules)
	if in.onlyPreviews() { // the process of the cluster may have previewed before
		group.previews.Replaces = append(group.previews.Replaces, forge.NameOfCluster(s.Spec.ClusterName))
	}
	return f, nil
}

// onlyPreviews reports whether the process makes no passes.
func (in Surroundings) onlyPreviews() bool {
	return in.PullRequests != nil && in.PullRequests.Name != ""
}

// nameOfPreviews returns the name of the previews of a Sync with statuses.
func nameOfPreviews(s v1alpha1.Sync) string {
	if s.Spec.Statuses.Per != v1alpha1.PerSync {
		return forge.NameOfCluster(s.Spec.ClusterName)
	}
	cluster := "" // only if previews ask a cluster
	if s.Spec.LivePreviews {
		cluster = s.Spec.ClusterName
	}
	return forge.NameOfSync(inventory.Sync{Namespace: s.Namespace, Name: s.Name}, cluster, v1alpha1.DefaultNamespace)
}

// group returns the previewer that a Sync joins. The first Sync determines the account that posts.
func (all *PullRequests) group(s v1alpha1.Sync, account forge.Account, in Surroundings) (*previewer, error) {
	key := pullRequestsOf{repository: account.Repository.Base + "/" + account.Repository.String(), cluster: s.Spec.ClusterName}
	name := nameOfPreviews(s)
	if s.Spec.Statuses.Per == v1alpha1.PerSync {
		key.sync = inventory.Sync{Namespace: s.Namespace, Name: s.Name}
	}
	if all.Name != "" {
		key, name = pullRequestsOf{repository: key.repository}, forge.NameOfCluster(all.Name)
	}
	if group := all.groups[key]; group != nil {
		return group, nil
	}
	pulls, err := account.Pulls()
	if err != nil {
		return nil, fmt.Errorf("spec.statuses: %w", err)
	}
	record, err := account.Poster()
	if err != nil {
		return nil, fmt.Errorf("spec.statuses: %w", err)
	}
	group := &previewer{
		previews: &forge.Previews{Poster: record, Pulls: pulls, Name: name, TargetURL: s.Spec.PageURL, Commands: map[inventory.Sync]forge.Rules{}},
		caches:   map[string]*follower{},
	}
	woken := make(chan struct{}, 1)
	group.wake = func() { notify(woken) }
	group.PreviewLoop = reconcile.PreviewLoop{Requests: requests{pulls, group}, Woken: woken, OnEvent: in.Event}
	if all.groups == nil {
		all.groups = map[pullRequestsOf]*previewer{}
	}
	all.groups[key] = group
	return group, nil
}

// join adds a Sync to the previews of its repository.
func (p *previewer) join(f *follower, s v1alpha1.Sync, url string, rules *forge.Rules) {
	if p.first == nil {
		p.first = f
	}
	if p.caches[url] == nil {
		p.caches[url] = f
	}
	p.Syncs = append(p.Syncs, f.sync)
	of := f.sync.Reconciler.Sync
	if rules != nil {
		p.previews.Commands[of] = *rules
	}
	if s.Spec.Statuses.Per != v1alpha1.PerSync {
		p.previews.Replaces = append(p.previews.Replaces, forge.NameOfSync(of, "", v1alpha1.DefaultNamespace), forge.NameOfSync(of, s.Spec.ClusterName, v1alpha1.DefaultNamespace))
	}
	p.forks = p.forks || s.Spec.ForkPreviews != nil
	interval := cmp.Or(s.Spec.Source.Interval, s.Spec.Interval).Duration()
	if p.Interval == 0 || interval != 0 && interval < p.Interval {
		p.Interval = interval
	}
}

// rulesOf returns whose comments and reviews count on the pull requests of a Sync; nil if none do. It returns an error if the Sync
// requests something that the forge cannot provide.
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
	// The Sync only uses the defaults, and a warning explains why no comment counts.
	case a.Comments == "" && !a.Reviews && !rules.ByAuthor:
		return nil, nil
	}
	return nil, fmt.Errorf("spec.approvals: %w; or set comments: Never, and approve in %s", err, render.ApprovalsFile)
}

// unheard returns why comments do not approve on the pull requests of a Sync with default settings; nil if they do.
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

// notify wakes the receiver. If the receiver is busy, it will look anyway.
func notify(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// runs reports whether this follower runs the previews of its repository.
func (f *follower) runs() bool { return f.of.first == f }

func (f *follower) Close() error {
	all := []error{f.origin.into.Close(), f.origin.heads.Close()}
	for _, w := range f.wired {
		all = append(all, w.Close())
	}
	all = append(all, f.temp.Remove())
	return errors.Join(all...)
}

// isolate makes previews run in processes of their own.
func (f *follower) isolate(s v1alpha1.Sync, by *Isolation) error {
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
	f.sync.Elsewhere = func(ctx context.Context, fork bool, into, head string) (report.Report, error) {
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

// An origin is one repository with two limits. Heads must be smaller than their target, because only people with push access can
// enlarge the target.
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

// A requests gives access to the pull requests on a forge.
type requests struct {
	pulls *forge.Pulls
	of    *previewer
}

func (q requests) Open(ctx context.Context) ([]reconcile.Request, error) {
	pulls, err := q.pulls.Open(ctx)
	if err != nil {
		return nil, err
	}
	queued, err := q.pulls.Queued(ctx)
	if err != nil {
		return nil, err
	}
	pulls = append(queued, pulls...)
	var open []reconcile.Request
	for _, p := range pulls {
		open = append(open, reconcile.Request(p))
	}
	return open, nil
}

func (q requests) Counts(ctx context.Context, of reconcile.Request) (bool, error) {
	return q.pulls.Counts(ctx, forge.Pull(of))
}

func (q requests) Publisher(of reconcile.Request, targets []string) reconcile.PreviewPublisher {
	previews := &forge.Previews{}
	*previews = *q.of.previews
	previews.Pull, previews.Targets = forge.Pull(of), targets
	if of.Fork && !q.of.forks {
		previews.Pulls = nil // a pull request from a fork gets a status, but no comment
	}
	return previews
}
