package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/engine"
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

// A fleet runs the Syncs of files, and follows changes of the files. A Sync that changes is stopped and started again; all others go on.
type fleet struct {
	*terminal

	flags  *runFlags
	common target.Surroundings // of all Syncs
	read   *syncFiles          // for approvals
	counts *metrics.Metrics
	hooks  *forge.Webhooks // nil if no webhooks are received

	running map[inventory.Sync]*running
	ended   sync.WaitGroup
}

// newFleet returns the fleet for some Syncs. It runs nothing.
func (t *terminal) newFleet(flags *runFlags, syncs []v1alpha1.Sync) (*fleet, error) {
	f := &fleet{terminal: t, flags: flags, read: &syncFiles{names: flags.files}, counts: metrics.New(), running: map[inventory.Sync]*running{}}
	if err := f.check(syncs); err != nil {
		return nil, err
	}
	cfg, err := flags.in.config()
	if err != nil {
		return nil, err
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, f.counts} })
	f.common = target.Surroundings{
		Cluster: cfg, Event: func(e reconcile.Event) { measure(f.counts, e) }, Cache: clones(flags.cache), Peers: &reconcile.Peers{InTurn: flags.once},
		Slots: engine.NewSlots(flags.most), Shares: &cluster.Shares{}, Clones: &git.Shared{}, Memo: new(memo.Memory), // several Syncs often read the same repository
		KeyFiles: flags.trust.keys, TrustedRoot: flags.trust.root, Plain: flags.plain,
	}
	return f, nil
}

// check returns an error if the Syncs cannot be run together. It keeps their secrets out of all output.
func (f *fleet) check(syncs []v1alpha1.Sync) error {
	for _, s := range syncs {
		for _, secret := range target.Secrets(s, f.getenv) {
			f.masked.hide(secret)
		}
	}
	return target.OneHost(syncs, f.getenv)
}

// wire returns the targets of some Syncs, in their order. It sends no request. If together is set, they join those that run. The caller
// closes the targets, also after an error.
func (f *fleet) wire(syncs []v1alpha1.Sync, together bool) ([]*target.Target, error) {
	in := f.common
	in.PullRequests = &target.PullRequests{Name: f.flags.only}
	if !together {
		in.Peers, in.Shares = nil, nil
	}
	targets, err := f.targets(syncs, in, func(s v1alpha1.Sync) func() approval.Given { return standing(f.read, s, f.flags.once, f.flags.allow) })
	if err == nil && f.flags.only != "" && !slices.ContainsFunc(targets, (*target.Target).Previews) {
		err = usagef("--previews: no sync has spec.statuses, which name the forge of the pull requests and its token")
	}
	return targets, err
}

// previews reports whether the pull requests of a Sync are previewed. That is done for all such Syncs together.
func (f *fleet) previews(s v1alpha1.Sync) bool { return f.flags.only != "" || s.Spec.Previews }

// run runs the targets of Syncs until ctx is done, and follows changes of the files. It also receives webhooks for them, and answers
// others who look at them, on the addresses that are set. A hangup of the terminal does not end it.
func (f *fleet) run(ctx context.Context, syncs []v1alpha1.Sync, targets []*target.Target, hooks listener, seen probes) error {
	signal.Ignore(syscall.SIGHUP)
	f.count(targets)
	listening, err := seen.listen(ctx, f.counts)
	if err != nil {
		return errors.Join(err, closeAll(targets))
	}
	for _, one := range listening {
		f.ended.Go(func() { one.serve(ctx) })
	}
	if hooks.address != "" {
		serve, err := f.listen(ctx, targets, hooks)
		if err != nil {
			return errors.Join(err, closeAll(targets))
		}
		f.ended.Go(serve)
	}
	f.start(ctx, syncs, targets)
	f.follow(ctx)
	f.ended.Wait()
	slog.Info("ended")
	var problems []error
	for _, one := range f.running {
		problems = append(problems, one.Close())
	}
	return errors.Join(problems...)
}

// listen listens for webhooks. The returned function serves them until ctx is done.
func (f *fleet) listen(ctx context.Context, targets []*target.Target, at listener) (serve func(), err error) {
	hears, err := subscribers(targets)
	if err != nil {
		return nil, err
	}
	f.hooks = &forge.Webhooks{Log: logHandled, Subscribers: hears}
	return webhooks(ctx, at, f.hooks)
}

// A running Sync is one with its target.
type running struct {
	*target.Target

	sync  v1alpha1.Sync
	stop  context.CancelFunc
	ended chan struct{}
}

func nameOf(s v1alpha1.Sync) inventory.Sync {
	return inventory.Sync{Namespace: s.Namespace, Name: s.Name}
}

// A change is the difference between the Syncs that run and those of the files.
type change struct {
	added, changed, removed, approved []inventory.Sync
}

// changeOf returns the difference between two lists of Syncs, each sorted. Approvals are read before every pass, so a Sync with another
// one goes on. If one that previews changes, all of those change.
func changeOf(before, after []v1alpha1.Sync, previews func(v1alpha1.Sync) bool) change {
	was, now := byName(before), byName(after)
	var c change
	for name, s := range now {
		old, runs := was[name]
		switch {
		case !runs:
			c.added = append(c.added, name)
		case !reflect.DeepEqual(unapproved(old), unapproved(s)):
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
	touched := slices.Concat(c.added, c.changed, c.removed)
	if slices.ContainsFunc(touched, func(name inventory.Sync) bool { return previews(was[name]) || previews(now[name]) }) {
		for name := range was {
			if s, stays := now[name]; stays && previews(s) && !slices.Contains(touched, name) {
				c.changed = append(c.changed, name)
			}
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
		named[nameOf(s)] = s
	}
	return named
}

// unapproved returns a Sync without its approval.
func unapproved(s v1alpha1.Sync) v1alpha1.Sync {
	s.Annotations = maps.Clone(s.Annotations)
	delete(s.Annotations, v1alpha1.ApproveAnnotation)
	if len(s.Annotations) == 0 {
		s.Annotations = nil
	}
	return s
}

// start runs Syncs until ctx is done, or until they are stopped.
func (f *fleet) start(ctx context.Context, syncs []v1alpha1.Sync, targets []*target.Target) {
	for i, s := range syncs {
		ctx, cancel := context.WithCancel(ctx)
		one := &running{targets[i], s, cancel, make(chan struct{})}
		f.running[nameOf(s)] = one
		f.ended.Go(func() {
			defer close(one.ended)
			one.Run(ctx)
		})
	}
}

// stop stops Syncs, and returns once their passes have ended.
func (f *fleet) stop(names []inventory.Sync) {
	for _, name := range names {
		f.running[name].stop()
	}
	for _, name := range names {
		one := f.running[name]
		<-one.ended
		if err := one.Close(); err != nil {
			slog.Warn("temporary files stay", "sync", name.String(), "error", err)
		}
		delete(f.running, name)
	}
}

// follow takes up changes of the files until ctx is done.
func (f *fleet) follow(ctx context.Context) {
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
func (f *fleet) content() []byte {
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
func (f *fleet) takeUp(ctx context.Context) {
	syncs, err := readSyncs(f.flags.files)
	if err == nil {
		err = f.check(syncs)
	}
	if err != nil {
		logRefused(err)
		return
	}
	var before []v1alpha1.Sync
	for _, one := range f.running {
		before = append(before, one.sync)
	}
	c := changeOf(before, syncs, f.previews)
	now := byName(syncs)
	for _, name := range c.approved {
		f.running[name].sync = now[name]
		f.running[name].Approved()
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
	f.stop(slices.Concat(c.changed, c.removed))
	targets, err := f.wire(next, true) //nolint:contextcheck // the same
	if err != nil {                    // it worked a moment ago
		slog.Error("Syncs do not run until their file changes again", "error", errors.Join(err, closeAll(targets)))
		return
	}
	for _, name := range c.removed {
		f.common.Peers.Leave(name)
		f.counts.Remove(name.Namespace, name.Name)
	}
	f.count(targets)
	f.start(ctx, next, targets)
	f.subscribe()
}

// count shows the metrics of targets.
func (f *fleet) count(targets []*target.Target) {
	for _, one := range targets {
		if of := one.Loop.Reconciler.Sync; one.Passes() {
			f.counts.Add(of.Namespace, of.Name, one.Waiting())
		}
	}
}

// subscribe makes the webhooks of all Syncs wake them.
func (f *fleet) subscribe() {
	if f.hooks == nil {
		return
	}
	var all []*target.Target
	for _, one := range f.running {
		all = append(all, one.Target)
	}
	hears, err := subscribers(all)
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
func (f *fleet) tryOut(syncs []v1alpha1.Sync) error {
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
