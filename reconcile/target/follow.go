package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

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
//
//	Start of a Sync ─► join ─┐
//	                         ├► the loop of the group ends ─► another one, with the Syncs that run now, goes on
//	end of a Sync ─► leave ──┤
//	stall of a Sync ─► expect┘
type PullRequests struct {
	// Name is set in a process that makes no passes. It previews for all of its Syncs, whatever their clusters, with one comment
	// and one status of this name.
	Name string
	// Tenants gives each namespace comments and statuses of its own: Syncs of different namespaces do not trust each other with their
	// tokens. Shard is a part of their names, because other shards preview for the same namespace.
	Tenants bool
	Shard   string

	mu     sync.Mutex
	groups map[pullRequestsOf]*previewer
	told   map[inventory.Sync]absentee // the Syncs that this process is told to run
	places chan struct{}               // of previews in processes of their own
}

// PreviewsAtOnce is how many processes of previews a process has at a time.
const PreviewsAtOnce = 2

// A pullRequestsOf identifies what shares comments and statuses. The cluster is part of it because other processes post for other
// clusters, and no process knows the Syncs of another one.
type pullRequestsOf struct {
	repository string // base, owner and name
	cluster    string
	namespace  string         // set if each namespace has its own
	sync       inventory.Sync // set for Syncs with comments of their own
}

// A previewer previews the pull requests of a repository for the Syncs that joined it.
type previewer struct {
	woken  chan struct{}
	memory reconcile.PreviewMemory

	// Guarded by PullRequests.mu.
	members []*follower // that run, by name
	runs    bool
	now     *previewing // nil until the first loop begins
}

// A previewing is a loop over the pull requests of a group.
type previewing struct {
	stop  context.CancelFunc
	ended chan struct{}
}

// A follower is the part of one Sync in the previews of its repository. It has its own clone, so that no pass waits for it and the
// heads of pull requests stay separate from the commits that passes read.
type follower struct {
	of       *PullRequests
	key      pullRequestsOf
	sync     reconcile.PreviewedSync
	origin   origin
	wired    []*Wired
	temp     scratch.Dir // the directory of its clone, if that is temporary
	interval time.Duration
	event    func(reconcile.Event)

	previews *forge.Previews // without the pull request, as if the Sync were the only one
	forks    bool            // pull requests from forks are previewed

	group *previewer      // that it joined
	gone  <-chan struct{} // the Sync ends
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
	rules, err := rulesOf(s, account.Repository)
	if err != nil {
		return nil, err
	}
	f := &follower{
		of: cmp.Or(in.PullRequests, &PullRequests{}), event: in.Event, forks: s.Spec.ForkPreviews != nil,
		interval: cmp.Or(cmp.Or(s.Spec.Source.Interval, s.Spec.Interval).Duration(), time.Minute),
	}
	if err := f.posts(s, account, rules); err != nil {
		return nil, err
	}
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
	how := How{Fresh: freshTags, Compares: true}
	if loop.Cluster != nil {
		how.Secret = loop.Cluster.Secret
	}
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
	f.sync = reconcile.PreviewedSync{ID: f, Reconciler: own, Origin: f.origin, Ref: s.Spec.Source.Ref}
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
	return f, nil
}

// onlyPreviews reports whether the process makes no passes.
func (in Surroundings) onlyPreviews() bool {
	return in.PullRequests != nil && in.PullRequests.Name != ""
}

// posts sets what posts the previews of a Sync, under which name, and with which others. rules are nil if no comments count.
func (f *follower) posts(s v1alpha1.Sync, account forge.Account, rules *forge.Rules) error {
	pulls, err := account.Pulls()
	if err != nil {
		return fmt.Errorf("spec.statuses: %w", err)
	}
	record, err := account.Poster()
	if err != nil {
		return fmt.Errorf("spec.statuses: %w", err)
	}
	f.previews = &forge.Previews{Poster: record, Pulls: pulls, TargetURL: s.Spec.PageURL, Commands: map[inventory.Sync]forge.Rules{}}
	of := NameOf(s)
	if rules != nil {
		f.previews.Commands[of] = *rules
	}
	f.key = f.of.keyOf(s, account.Repository)
	f.previews.Name = f.of.nameOf(s)
	if s.Spec.Statuses.Per != v1alpha1.PerSync {
		f.previews.Replaces = []string{forge.NameOfSync(of, "", v1alpha1.DefaultNamespace), forge.NameOfSync(of, s.Spec.ClusterName, v1alpha1.DefaultNamespace)}
	}
	if f.of.Name != "" {
		f.previews.Replaces = append(f.previews.Replaces, forge.NameOfCluster(s.Spec.ClusterName)) // the process of the cluster may have previewed before
	}
	return nil
}

// keyOf returns what a Sync with statuses shares comments and a status with.
func (all *PullRequests) keyOf(s v1alpha1.Sync, at forge.Repository) pullRequestsOf {
	key := pullRequestsOf{repository: at.Base + "/" + at.String()}
	if all.Name != "" {
		return key
	}
	key.cluster = s.Spec.ClusterName
	if all.Tenants {
		key.namespace = s.Namespace
	}
	if s.Spec.Statuses.Per == v1alpha1.PerSync {
		key.sync = NameOf(s)
	}
	return key
}

// nameOf returns the name of the previews of a Sync with statuses.
func (all *PullRequests) nameOf(s v1alpha1.Sync) string {
	if all.Name != "" {
		return forge.NameOfCluster(all.Name)
	}
	if s.Spec.Statuses.Per != v1alpha1.PerSync {
		parts := []string{forge.NameOfCluster(s.Spec.ClusterName)}
		if all.Tenants && s.Namespace != v1alpha1.DefaultNamespace {
			parts = append(parts, s.Namespace)
		}
		if all.Shard != "" {
			parts = append(parts, all.Shard)
		}
		return strings.Join(parts, "/")
	}
	cluster := "" // only if previews ask a cluster
	if s.Spec.LivePreviews {
		cluster = s.Spec.ClusterName
	}
	return forge.NameOfSync(NameOf(s), cluster, v1alpha1.DefaultNamespace)
}

// start previews for a Sync until ctx is done. Once wait returns, nothing uses the Sync, its clone or its token any more.
func (f *follower) start(ctx context.Context) (wait func()) {
	f.of.join(ctx, f)
	left := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(left)
		f.of.leave(f)
	})
	return func() { <-left }
}

// join adds a Sync to the previews of its repository.
func (all *PullRequests) join(ctx context.Context, f *follower) {
	all.mu.Lock()
	defer all.mu.Unlock()
	p := all.groups[f.key]
	if p == nil {
		p = &previewer{woken: make(chan struct{}, 1)}
		if all.groups == nil {
			all.groups = map[pullRequestsOf]*previewer{}
		}
		all.groups[f.key] = p
	}
	f.group, f.gone = p, ctx.Done()
	p.members = append(p.members, f)
	slices.SortFunc(p.members, func(a, b *follower) int { return strings.Compare(a.name(), b.name()) })
	if p.now != nil {
		p.now.stop()
	}
	if !p.runs {
		p.runs = true
		go all.run(context.WithoutCancel(ctx), p)
	}
}

// leave removes a Sync from the previews of its repository. It returns once the loop with the Sync has ended.
func (all *PullRequests) leave(f *follower) {
	all.mu.Lock()
	p := f.group
	p.members = slices.DeleteFunc(p.members, func(other *follower) bool { return other == f })
	if len(p.members) == 0 {
		delete(all.groups, f.key)
	}
	now := p.now
	all.mu.Unlock()
	if now != nil {
		now.stop()
		<-now.ended
	}
}

const (
	// settle is how long a group of Syncs stays as it is before a loop begins: at its start, a process adds one Sync after the other.
	settle = 500 * time.Millisecond
	// mostSettle is how long it waits for Syncs that are told to run: their clusters may be away.
	mostSettle = time.Minute
)

// run runs one loop after the other for a group, each with the Syncs that run then. It returns once all of them have ended.
func (all *PullRequests) run(base context.Context, p *previewer) {
	for {
		ctx, stop := context.WithCancel(base)
		all.mu.Lock()
		running := slices.DeleteFunc(slices.Clone(p.members), (*follower).hasEnded)
		if len(running) == 0 {
			p.runs = false
			all.mu.Unlock()
			stop()
			return
		}
		now := &previewing{stop, make(chan struct{})}
		p.now = now
		absent, wait := all.absent(running)
		all.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			p.loop(all, running, absent).Run(ctx)
		}
		stop()
		close(now.ended)
	}
}

// An absentee is a Sync that is told to run. While it does not, a preview of its group names it.
type absentee struct {
	key  pullRequestsOf
	sync inventory.Sync
	ref  string
	why  string // why it does not run; "" if it does, or soon will
}

// expect makes the previews of a group name a Sync while it does not run. stalled is why; nil if it does, or soon will.
func (all *PullRequests) expect(s v1alpha1.Sync, stalled error) {
	if all == nil {
		return
	}
	now := absentee{sync: NameOf(s), ref: s.Spec.Source.Ref}
	if stalled != nil {
		now.why, _, _ = strings.Cut(stalled.Error(), "\n")
	}
	if s.Spec.Previews && s.Spec.Statuses != nil {
		if at, err := repositoryOf(s.Spec); err == nil {
			now.key = all.keyOf(s, at)
		}
	}
	all.tell(now)
}

// forget makes no preview name a Sync any more.
func (all *PullRequests) forget(name inventory.Sync) {
	if all != nil {
		all.tell(absentee{sync: name})
	}
}

// tell records what a Sync is told. The loops of the groups that it leaves and enters end, and others go on.
func (all *PullRequests) tell(now absentee) {
	all.mu.Lock()
	defer all.mu.Unlock()
	before := all.told[now.sync]
	if now == before {
		return
	}
	delete(all.told, now.sync)
	if now.key != (pullRequestsOf{}) {
		if all.told == nil {
			all.told = map[inventory.Sync]absentee{}
		}
		all.told[now.sync] = now
	}
	for _, key := range []pullRequestsOf{before.key, now.key} {
		if p := all.groups[key]; p != nil && p.now != nil {
			p.now.stop()
		}
	}
}

// absent returns the Syncs of the group of some others that do not run, by name, and how long to wait before a loop names them. The lock is
// held.
func (all *PullRequests) absent(running []*follower) (away []absentee, wait time.Duration) {
	wait = settle
	runs := map[inventory.Sync]bool{}
	for _, f := range running {
		runs[f.sync.Reconciler.Sync] = true
	}
	for name, one := range all.told {
		if one.key != running[0].key || runs[name] {
			continue
		}
		if one.why == "" {
			one.why, wait = "it has not started yet", mostSettle
		}
		away = append(away, one)
	}
	slices.SortFunc(away, func(a, b absentee) int { return a.sync.Compare(b.sync) })
	return away, wait
}

// loop returns the loop for some Syncs. The first one posts: its account and its URL are used for all, and its repository.
func (p *previewer) loop(all *PullRequests, syncs []*follower, absent []absentee) reconcile.PreviewLoop {
	previews := *syncs[0].previews
	previews.Replaces, previews.Commands = nil, map[inventory.Sync]forge.Rules{}
	loop := reconcile.PreviewLoop{Woken: p.woken, OnEvent: syncs[0].event, Memory: &p.memory, Turn: all.turn, Interval: syncs[0].interval}
	forks := false
	origins := map[[2]string]origin{}
	for _, f := range syncs {
		previews.Replaces = append(previews.Replaces, f.previews.Replaces...)
		maps.Copy(previews.Commands, f.previews.Commands)
		forks = forks || f.forks
		loop.Interval = min(loop.Interval, f.interval)
		one, clone := f.sync, [2]string{f.origin.into.URL, f.origin.into.Cache}
		if first, shared := origins[clone]; shared {
			one.Origin = first
		} else {
			origins[clone] = f.origin
		}
		loop.Syncs = append(loop.Syncs, one)
	}
	for _, one := range absent {
		loop.Syncs = append(loop.Syncs, reconcile.PreviewedSync{
			ID: one, Reconciler: reconcile.Reconciler{Sync: one.sync}, Origin: loop.Syncs[0].Origin, Ref: one.ref, Away: one.why,
		})
	}
	loop.Requests = requests{previews.Pulls, &previews, forks}
	return loop
}

// turn waits for a place for the process of a preview. Those that wait get one in the order in which they came.
func (all *PullRequests) turn(ctx context.Context) (end func(), err error) {
	all.mu.Lock()
	if all.places == nil {
		all.places = make(chan struct{}, PreviewsAtOnce)
	}
	places := all.places
	all.mu.Unlock()
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// name returns the name of the Sync, by which groups are sorted.
func (f *follower) name() string { return f.sync.Reconciler.Sync.String() }

// hasEnded reports whether the Sync is ending.
func (f *follower) hasEnded() bool {
	select {
	case <-f.gone:
		return true
	default:
		return false
	}
}

// wake makes the previews look at the pull requests soon.
func (f *follower) wake() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.group != nil {
		notify(f.group.woken)
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
	return &git.Repository{URL: of.URL, Path: of.Path, Cache: cache, Budget: of.Budget, Auth: of.Auth, Credentials: of.Credentials, Plain: of.Plain, Limits: limits}
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
	pulls    *forge.Pulls
	previews *forge.Previews // without the pull request
	forks    bool            // pull requests from forks are previewed
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
	*previews = *q.previews
	previews.Pull, previews.Targets = forge.Pull(of), targets
	if of.Fork && !q.forks {
		previews.Pulls = nil // a pull request from a fork gets a status, but no comment
	}
	return previews
}
