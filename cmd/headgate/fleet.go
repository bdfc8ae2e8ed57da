package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/fleet"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/reconcile/metrics"
	"headgate.dev/headgate/reconcile/target"
)

// reread is how often the files of Syncs are compared with what runs. What is read twice in a row is taken up, because an editor may be
// writing.
const reread = time.Second

// A filed runs the Syncs of files, and follows changes of the files. A Sync that changes is stopped and started again; all others go on.
type filed struct {
	*terminal

	flags  *runFlags
	common target.Surroundings // of all Syncs
	read   *syncFiles          // for approvals
	counts *metrics.Metrics
	hooks  *forge.Webhooks // nil if no webhooks are received

	running fleet.Fleet
}

// newFiled returns the fleet for some Syncs. It runs nothing.
func (t *terminal) newFiled(flags *runFlags, syncs []v1alpha1.Sync) (*filed, error) {
	f := &filed{terminal: t, flags: flags, read: &syncFiles{names: flags.files}, counts: metrics.New()}
	peers := &reconcile.Peers{InTurn: flags.once}
	f.running = fleet.Fleet{Peers: peers, Metrics: f.counts}
	if err := f.check(syncs); err != nil {
		return nil, err
	}
	cfg, err := flags.in.config()
	switch {
	case err == nil:
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, f.counts} })
	case flags.only == "" || !errors.Is(err, errNoKubeconfig): // previews need no cluster: a Pod that only makes these has no token
		return nil, err
	}
	record, err := t.audit(flags.audit)
	if err != nil {
		return nil, err
	}
	f.running.Audit = record
	clones := &git.Shared{} // several Syncs often read the same repository
	budget, err := flags.cache.budget(clones.Drop)
	if err != nil {
		return nil, err
	}
	f.counts.Cache(budget.Used)
	f.common = target.Surroundings{
		Audit: record, Cluster: cfg, Event: func(e reconcile.Event) { measure(f.counts, e) }, Cache: flags.cache.clones(), Budget: budget, Peers: peers,
		Queue: engine.NewQueue(flags.most), Remotes: new(reconcile.Remotes), Shares: &cluster.Shares{}, Boards: &target.Boards{}, Clones: clones, Memo: new(memo.Memory),
		KeyFiles: flags.trust.keys, TrustedRoot: flags.trust.root, Plain: flags.plain, PullRequests: &target.PullRequests{Name: flags.only},
	}
	return f, nil
}

// check returns an error if the Syncs cannot be run together. It keeps their secrets out of all output.
func (f *filed) check(syncs []v1alpha1.Sync) error {
	for _, s := range syncs {
		for _, secret := range target.Secrets(s, f.getenv) {
			f.masked.hide(secret)
		}
	}
	return target.OneHost(syncs, f.getenv)
}

// wire returns the targets of some Syncs, in their order. It sends no request. If together is set, they join those that run. The caller
// closes the targets, also after an error.
func (f *filed) wire(syncs []v1alpha1.Sync, together bool) ([]*target.Target, error) {
	in := f.common
	if !together {
		in.Peers, in.Shares = nil, nil
	}
	targets, err := f.targets(syncs, in, func(s v1alpha1.Sync) func() approval.Given { return standing(f.read, s, f.flags.once, f.flags.allow) })
	if err == nil && f.flags.only != "" && !slices.ContainsFunc(targets, (*target.Target).Previews) {
		err = usagef("--previews: no sync has spec.statuses, which name the forge of the pull requests and its token")
	}
	return targets, err
}

// run runs the targets of Syncs until ctx is done, and follows changes of the files. It also receives webhooks for them, and answers
// others who look at them, on the addresses that are set. A hangup of the terminal does not end it.
func (f *filed) run(ctx context.Context, syncs []v1alpha1.Sync, targets []*target.Target, hooks listener, seen probes) error {
	signal.Ignore(syscall.SIGHUP)
	listening, err := seen.listen(ctx, f.counts, f.waiting)
	if err != nil {
		return errors.Join(err, closeAll(targets))
	}
	if hooks.address != "" {
		serve, err := f.listen(ctx, targets, hooks)
		if err != nil {
			return errors.Join(err, closeAll(targets))
		}
		f.running.Go(serve)
	}
	f.start(ctx, syncs, targets)
	for _, one := range listening { // after the syncs are known, or the process would be ready before their first passes
		f.running.Go(func() { one.serve(ctx) })
	}
	f.follow(ctx)
	err = f.running.Wait()
	slog.Info("ended")
	return err
}

// waiting returns the syncs that have not ended their first pass, with or without an error. A broken commit or an absent forge must not
// make Kubernetes restart the process.
func (f *filed) waiting() []string {
	all := f.counts.Waiting()
	for i, name := range all {
		all[i] = "the first pass of " + name
	}
	return all
}

// listen listens for webhooks. The returned function serves them until ctx is done.
func (f *filed) listen(ctx context.Context, targets []*target.Target, at listener) (serve func(), err error) {
	hears, err := subscribers(targets)
	if err != nil {
		return nil, err
	}
	f.hooks = &forge.Webhooks{Log: logHandled, Subscribers: hears}
	return webhooks(ctx, at, f.hooks)
}

// A change is the difference between the Syncs that run and those of the files.
type change struct {
	added, changed, removed, approved []inventory.Sync
}

// changeOf returns the difference between two lists of Syncs, each sorted. Approvals are read before every pass, so a Sync with another
// one goes on.
func changeOf(before, after []v1alpha1.Sync) change {
	was, now := byName(before), byName(after)
	var c change
	for name, s := range now {
		old, runs := was[name]
		switch {
		case !runs:
			c.added = append(c.added, name)
		case !fleet.Same(old, s):
			c.changed = append(c.changed, name)
		case old.Annotations[v1alpha1.ApproveAnnotation] != s.Annotations[v1alpha1.ApproveAnnotation]:
			c.approved = append(c.approved, name)
		}
	}
	for name := range was {
		if _, stays := now[name]; !stays {
			c.removed = append(c.removed, name)
		}
	}
	for _, all := range [][]inventory.Sync{c.added, c.changed, c.removed, c.approved} {
		slices.SortFunc(all, func(a, b inventory.Sync) int { return strings.Compare(a.String(), b.String()) })
	}
	return c
}

func byName(all []v1alpha1.Sync) map[inventory.Sync]v1alpha1.Sync {
	named := make(map[inventory.Sync]v1alpha1.Sync, len(all))
	for _, s := range all {
		named[target.NameOf(s)] = s
	}
	return named
}

// start runs Syncs until ctx is done, or until they are stopped.
func (f *filed) start(ctx context.Context, syncs []v1alpha1.Sync, targets []*target.Target) {
	for i, s := range syncs {
		f.running.Start(ctx, s, targets[i])
	}
}

// follow takes up changes of the files until ctx is done.
func (f *filed) follow(ctx context.Context) {
	read := f.content()
	taken := read
	for tick := time.NewTicker(reread); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-tick.C:
			before := read
			read = f.content()
			if bytes.Equal(read, before) && !bytes.Equal(read, taken) {
				taken = read
				f.takeUp(ctx)
			}
		}
	}
}

// content returns the content of the files. A file that cannot be read has its error, and a pipe has nothing: it can be read only once.
func (f *filed) content() []byte {
	var all [][]byte
	for _, name := range f.flags.files {
		var data []byte
		info, err := os.Stat(name)
		if err == nil && info.Mode().IsRegular() {
			data, err = os.ReadFile(name)
		}
		if err != nil {
			data = []byte(err.Error())
		}
		all = append(all, data)
	}
	return bytes.Join(all, []byte{0})
}

// takeUp starts and stops Syncs as the files want it. Files with an error change nothing.
func (f *filed) takeUp(ctx context.Context) {
	syncs, err := readSyncs(f.flags.files)
	if err == nil {
		err = f.check(syncs)
	}
	if err != nil {
		logRefused(err)
		return
	}
	c := changeOf(f.running.Syncs(), syncs)
	now := byName(syncs)
	for _, name := range c.approved {
		f.running.Annotate(now[name])
	}
	if len(c.added)+len(c.changed)+len(c.removed) == 0 {
		return
	}
	var next []v1alpha1.Sync
	for _, name := range slices.Concat(c.added, c.changed) {
		next = append(next, now[name])
	}
	if err := f.tryOut(next); err != nil { //nolint:contextcheck // only the log of a loop needs one
		logRefused(err)
		return
	}
	slog.Info("the file of Syncs has changed", "added", namesOf(c.added), "changed", namesOf(c.changed), "removed", namesOf(c.removed))
	f.running.Remove(c.removed...)
	f.running.Stop(c.changed...)
	targets, err := f.wire(next, true) //nolint:contextcheck // the same
	if err != nil {                    // it worked a moment ago
		slog.Error("Syncs do not run until their file changes again", "error", errors.Join(err, closeAll(targets)))
		return
	}
	f.start(ctx, next, targets)
	f.subscribe()
}

// subscribe makes the webhooks of all Syncs wake them.
func (f *filed) subscribe() {
	if f.hooks == nil {
		return
	}
	hears, err := subscribers(f.running.Targets())
	if err != nil {
		slog.Error("not all webhooks are received", "error", err)
	}
	f.hooks.Subscribe(hears)
}

// logRefused logs why the files change nothing.
func logRefused(err error) {
	slog.Error("the file of Syncs has an error and changes nothing", "error", err)
}

// tryOut returns an error if Syncs cannot be run.
func (f *filed) tryOut(syncs []v1alpha1.Sync) error {
	targets, err := f.wire(syncs, false)
	return errors.Join(err, closeAll(targets))
}

func namesOf(all []inventory.Sync) []string {
	var texts []string
	for _, name := range all {
		texts = append(texts, name.String())
	}
	return texts
}
