package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/target"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newRun(t *terminal) *cobra.Command {
	f, show := new(runFlags), newView()
	cmd := &cobra.Command{
		Use:   "run -f FILE [flags]",
		Short: "Keep clusters in sync with branches, and report on the commits",
		Long: `Run reads a file of Syncs (headgate.dev/v1alpha1) and makes passes over each of them: for
every new commit, when another writer changes an object of the sync, and after an interval.
A pass does what sync does. Several syncs run side by side; --concurrent of their passes work
at the same time, and those that wait for something do not count. Passes for commits come
first, then those because of drift, then those after an interval.

With statuses in the Sync, the commit gets two statuses on its forge, for activation and for
drift. If Headgate cannot post a status, it keeps it, also through a restart, and posts it
later.

A sync whose managementPolicy is Observable only reads what Flux, Argo CD or another tool
applies. It needs only the rights to get, list and watch.

The file contains no secrets, only the names of environment variables, or of Secrets in the
namespace of the sync; by default HEADGATE_GIT_PASSWORD for the repository and
HEADGATE_FORGE_TOKEN for statuses. If the repositories are on several hosts, each Sync names
its credentials. After an interrupt or SIGTERM, a pass finishes its writes and records them; a
second signal ends it at once. SIGHUP ends nothing.

With previews: true, a sync also follows the pull requests into its branch: every new head gets
the comment and the status of 'headgate preview', with packages of the registries that the target
or previewRegistries names. Pull requests from forks need forkPreviews; they are previewed without
credentials, and only with packages of the registries listed there.

--previews NAME makes no passes. It previews for all syncs of the file together, also for those
of other clusters: a pull request gets one comment and the status headgate/NAME/preview. The
processes of the clusters leave out previews, and post only the statuses of their passes. A
Sync of the file with previews: true is an error, because two processes would comment.

` + aboutWebhooks() + `

Headgate takes up changes of the file while it runs: a Sync that is added, changed, suspended or
removed. Objects of a removed Sync stay in the cluster. All other Syncs go on. An approval in the
file ('headgate approve') starts a pass at once. A file with an error changes nothing, and the log
has the error.

With --health-address, /readyz answers 200 once every sync has ended its first pass, with or
without an error, and /healthz while the process runs. With --metrics-address, /metrics has the
metrics for Prometheus. Both answer everybody who reaches the address, and only read.
` + aboutTraces + `

Logs go to standard error, as JSON unless that is a terminal. With --once the report goes
to standard output and the exit code comes from the pass.

` + exitCodes,
		Example: `  headgate run -f sync.yaml
  headgate run -f sync.yaml --once
  headgate run -f sync.yaml --webhook-address :9292 --webhook-cert tls.crt --webhook-key tls.key`,
		Args: takes(0, 0, "-f names a file of Syncs"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.run(cmd, f, show)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "file", "f", nil, "`file` of Syncs; may be given several times")
	flags.StringVar(&f.only, "previews", "", "make no passes: preview for all syncs together, with one comment and the status headgate/`NAME`/preview")
	flags.BoolVar(&f.once, "once", false, "make one pass over each sync, report, and end")
	addNumber(cmd, &f.most, "concurrent", 10, v1alpha1.Range{Least: 1, Most: 10_000}, "maximum `number` of passes that work at the same time")
	f.hooks.addTo(cmd)
	f.seen.addTo(cmd, "", "")
	addPlain(cmd, &f.plain)
	addAudit(cmd, &f.audit, auditOfProcess, "")
	f.allow.addTo(cmd)
	f.in.addTo(cmd)
	f.cache.addTo(cmd)
	f.trust.addTo(cmd)
	show.addTo(cmd)
	return cmd
}

// runFlags holds the flags of run.
type runFlags struct {
	in    clusterFlags
	files []string
	cache cacheFlags
	trust trustFlags
	once  bool
	only  string // the name of the previews, if there are no passes
	hooks listener
	seen  probes
	plain network.Plain
	audit string
	allow approveFlag
	most  int // passes that work at the same time
}

// check returns an error for flags that have no effect together.
func (f *runFlags) check() error {
	switch {
	case f.once && f.hooks.address != "":
		return usagef("--once makes one pass and receives no webhooks: leave out --webhook-address")
	case f.once && f.seen.given():
		return usagef("--once makes one pass and answers no requests: leave out --health-address and --metrics-address")
	case f.once && f.only != "":
		return usagef("--once makes a pass, and --previews makes none: leave out one of them")
	case f.only != "" && !v1alpha1.IsClusterName(f.only):
		return usagef("--previews %q: a name has letters, digits, '-', '_' and '.', at most 63", f.only)
	}
	return nil
}

func (t *terminal) run(cmd *cobra.Command, f *runFlags, show *view) error {
	if err := f.check(); err != nil {
		return err
	}
	syncs, err := readSyncs(f.files)
	if err != nil {
		return err
	}
	t.logRun()
	t.saveMemory()
	traces := tracerOfPasses(f.plain)
	defer traces.Close()
	all, err := t.newFiled(f, syncs)
	if err != nil {
		return err
	}
	all.common.Tracer = traces
	targets, err := all.wire(syncs, true)
	if err == nil {
		err = t.announceAll(f, syncs)
	}
	switch {
	case err != nil:
		return errors.Join(err, closeAll(targets))
	case f.once:
		return errors.Join(t.once(cmd.Context(), targets, show), closeAll(targets))
	}
	return all.run(cmd.Context(), syncs, targets, f.hooks, f.seen)
}

// announceAll announces the syncs that write into the cluster.
func (t *terminal) announceAll(f *runFlags, syncs []v1alpha1.Sync) error {
	for _, s := range syncs {
		of := inventory.Sync{Namespace: s.Namespace, Name: s.Name}
		if f.only != "" || s.Spec.ManagementPolicy == v1alpha1.PolicyObservable {
			continue
		}
		if err := t.announce("run", of, &f.in); err != nil {
			return err
		}
	}
	return nil
}

// aboutWebhooks is the part of the help that depends on the forges.
func aboutWebhooks() string {
	return wrapped("With --webhook-address, a push starts a pass at once, and a pull request starts its preview. The forge sends these events to the path " + webhookPath +
		" at that address, with a secret as proof. source.webhook of a Sync names that secret, by default HEADGATE_WEBHOOK_SECRET. Supported forges: " + enumerated(forge.Names(), "and") + ". " +
		ofForges(func(f forge.Forge) string { return f.WebhookHelp }) + " The listener speaks TLS with --webhook-cert and --webhook-key. Without them it listens on this machine only, unless --webhook-plain-http is set: use that only behind a proxy that terminates TLS.")
}

// closeAll removes the temporary files of targets.
func closeAll(targets []*target.Target) error {
	var problems []error
	for _, one := range targets {
		problems = append(problems, one.Close())
	}
	return errors.Join(problems...)
}

// readSyncs reads the Syncs of all files.
func readSyncs(files []string) ([]v1alpha1.Sync, error) {
	if len(files) == 0 {
		return nil, usagef("name the file of Syncs to run: -f FILE")
	}
	var all []v1alpha1.Sync
	var problems []error
	from := map[inventory.Sync]string{}
	for _, name := range files {
		data, err := readFile("file", name)
		if err != nil {
			return nil, err
		}
		syncs, err := decodeSyncs(name, data)
		if err != nil {
			problems = append(problems, eachWith(name, err)...)
		}
		for _, s := range syncs {
			of := inventory.Sync{Namespace: s.Namespace, Name: s.Name}
			if other := from[of]; other != "" {
				problems = append(problems, fmt.Errorf("%s: metadata.name: %s is a sync of %s already", name, of, other))
			}
			from[of] = name
		}
		all = append(all, syncs...)
	}
	return all, errors.Join(problems...)
}

// decodeSyncs decodes a file, and warns of fields that go.
func decodeSyncs(name string, data []byte) ([]v1alpha1.Sync, error) {
	syncs, warnings, err := api.DecodeWarned(data)
	if len(warnings) > 0 {
		for _, w := range eachWith(name, errors.Join(warnings...)) {
			slog.Warn(w.Error())
		}
	}
	return syncs, err
}

// eachWith adds the file to each error of a joined error.
func eachWith(file string, err error) []error {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = slices.Clone(joined.Unwrap())
	}
	for i, e := range all {
		if p, ok := errors.AsType[api.LineError](e); ok {
			all[i] = fmt.Errorf("%s:%d: %w", file, p.Line, p.Err)
		} else {
			all[i] = fmt.Errorf("%s: %w", file, e)
		}
	}
	return all
}

// clones returns the directory of clones.
func clones(flag string) string { return (&sourceFlags{cache: flag}).clones() }

// saveMemory makes a process that runs for long collect what it does not use any more earlier than others, unless its user decides that. That
// takes a little more CPU, and less memory the more syncs there are.
func (t *terminal) saveMemory() {
	if t.getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

// logRun configures a log on standard error.
func (t *terminal) logRun() {
	t.progress.off = true // every log line would overwrite it
	level := slog.LevelInfo
	if t.verbose > 0 {
		level = slog.LevelDebug
	}
	if t.errTTY {
		logTo(tint.NewTextHandler(t.err, &tint.Options{Level: level, NoColor: !t.coloured(t.errTTY), TimeFormat: time.TimeOnly, ReplaceAttr: loggable}))
		return
	}
	logTo(slog.NewJSONHandler(t.err, &slog.HandlerOptions{Level: level, ReplaceAttr: loggable}))
}

// targets wires every sync. like holds the surroundings that all of them share. The caller closes the targets, also after an error.
func (t *terminal) targets(syncs []v1alpha1.Sync, like target.Surroundings, approvals func(v1alpha1.Sync) func() approval.Given) ([]*target.Target, error) {
	var targets []*target.Target
	var problems []error
	for _, s := range syncs {
		around := like
		around.Getenv, around.Approvals = t.getenv, approvals(s)
		one, err := t.target(s, around)
		if err != nil {
			problems = append(problems, fmt.Errorf("sync %s: %w", s.Name, err))
			continue
		}
		targets = append(targets, one)
	}
	return targets, errors.Join(problems...)
}

// target wires a sync, and logs what it does.
func (t *terminal) target(s v1alpha1.Sync, around target.Surroundings) (*target.Target, error) {
	log := slog.With("sync", s.Namespace+"/"+s.Name)
	var holds holdLog
	around.Previews = &target.Isolation{Command: []string{"headgate", childVerb}}
	around.Secret = t.masked.hide
	tell := around.Event
	around.Event = func(e reconcile.Event) {
		if e.Kind == reconcile.Passed || e.Kind == reconcile.Previewed {
			freeSoon()
		}
		logEvent(log, e)
		holds.log(log, e)
		tell(e)
	}
	around.Done = func(e cluster.Event) {
		log.Debug(e.Phase, "object", e.Object, "done", e.Done, "total", e.Total)
	}
	return target.New(s, around)
}

// freeSoon returns memory to the system: until its next pass, a sync needs a fraction of the memory. Passes that end at about the same
// time have this together, because it takes longer than a small pass.
var freeSoon = func() func() {
	var waits atomic.Bool
	return func() {
		if waits.CompareAndSwap(false, true) {
			time.AfterFunc(time.Second, func() {
				waits.Store(false)
				debug.FreeOSMemory()
			})
		}
	}
}()

// once makes one pass over each target, one after the other. The worst exit code counts.
func (t *terminal) once(ctx context.Context, targets []*target.Target, show *view) error {
	var problems []error
	worst := report.ExitSuccess
	for _, one := range targets {
		r, err := one.Once(ctx)
		problems = append(problems, err, t.report(show, r))
		if worst != report.ExitFailed && r.Verdict.ExitCode != report.ExitSuccess {
			worst = r.Verdict.ExitCode
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if worst != report.ExitSuccess {
		return exit{code: worst}
	}
	return nil
}

// logSource logs whether the repository or the source of Flux can be read.
func logSource(log *slog.Logger, problem error) {
	if problem != nil {
		log.Warn("the source cannot be read", "error", problem)
		return
	}
	log.Debug("the source can be read")
}

// logEvent logs an event of a loop: news at level info, everything else at level debug.
func logEvent(log *slog.Logger, e reconcile.Event) {
	if e.Revision != "" {
		log = log.With("revision", e.Revision)
	}
	switch e.Kind {
	case reconcile.Passed:
		logPass(log, e)
	case reconcile.PublishFailed:
		log.Warn("a status could not be posted", "error", e.Err)
	case reconcile.WatchFailed:
		log.Warn("drift is found only by the next pass", "of", e.For, "error", e.Err)
	case reconcile.Watched:
		log.Info(string(e.Kind), "of", e.For)
	case reconcile.SourceState:
		logSource(log, e.Err)
	case reconcile.WebhookFailed:
		log.Warn("webhooks are refused", "error", e.Err)
	case reconcile.Previewed:
		logPreview(log, e)
	case reconcile.Forgotten:
		log.Info(string(e.Kind), "pull", e.Pull)
	case reconcile.Unheard:
		log.Warn("comments on pull requests do not approve", "error", e.Err)
	case reconcile.PullsFailed:
		log.Warn("not every pull request is previewed", "error", e.Err)
	case reconcile.Overtaken:
		log.Info(string(e.Kind), "by", e.By)
	case reconcile.Waiting:
		log.Info(string(e.Kind), "for", e.For, "took", e.Took.Round(time.Second).String())
	case reconcile.Stopped:
		log.Info(string(e.Kind), "error", e.Err)
	case reconcile.Began:
		log.Debug(string(e.Kind), "because", e.Because)
	default:
		log.Info(string(e.Kind))
	}
}

func logPreview(log *slog.Logger, e reconcile.Event) {
	log = log.With("pull", e.Pull, "took", e.Took.Round(time.Millisecond).String())
	logDefect(log, e.Err)
	if e.Err != nil {
		log.Warn("the preview has an error", "error", e.Err)
		return
	}
	log.Info("preview", "status", e.Preview.Status().Description)
}

// logDefect logs the stack of a preview or pass that panicked, for Headgate's developers.
func logDefect(log *slog.Logger, err error) {
	if defect, ok := errors.AsType[interface {
		error
		Stack() string
	}](err); ok {
		log.Error("a defect of Headgate", "error", err, "stack", defect.Stack())
	}
}

func logPass(log *slog.Logger, e reconcile.Event) {
	r := e.Report
	log = log.With("because", e.Because, "took", e.Took.Round(time.Millisecond).String())
	if e.Next > 0 {
		log = log.With("next", e.Next.Round(time.Second).String())
	}
	for _, s := range r.Steps {
		if s.Cause == plan.Drift {
			logDrift(log, s)
		}
	}
	for _, f := range r.Findings {
		if f.Rule == plan.RuleRebuilt || f.Rule == plan.RuleRestart {
			log.Warn(f.Message, "fix", f.Fix)
		}
	}
	for _, a := range r.Used() {
		log.Info("approved", "by", a.By, "how", a.How, "digests", a.Digests, "at", a.At)
	}
	logDefect(log, e.Err)
	if e.Err != nil {
		log.Error("the pass stopped", "error", e.Err)
		return
	}
	level := slog.LevelInfo
	switch {
	case r.Verdict.ExitCode != report.ExitSuccess:
		level = slog.LevelWarn
	case e.Because == reconcile.Time && !slices.ContainsFunc(r.Steps, func(s report.Step) bool { return s.Action != plan.Keep }):
		level = slog.LevelDebug // as usual
	}
	log.Log(context.Background(), level, "pass", "activation", r.Verdict.Activation.Description, "drift", r.Verdict.Drift.Description,
		"created", r.Summary.Created, "updated", r.Summary.Updated, "pruned", r.Summary.Pruned, "deleting", r.Summary.Deleting, "held", r.Summary.Held, "failed", r.Summary.Failed)
}

// logDrift logs a change by another field manager to an object, and whether Headgate undid it.
func logDrift(log *slog.Logger, s report.Step) {
	log = log.With("object", s.ID.String(), "action", s.Action)
	if len(s.TakesFrom) > 0 {
		log = log.With("by", s.TakesFrom)
	}
	if len(s.Changes) == 0 {
		log.Warn("drift")
	}
	for _, c := range s.Changes {
		log.Warn("drift", "path", c.Path, "is", c.From, "wanted", c.To)
	}
}

// A holdLog logs the steps that passes of a sync hold, each once while it stays held. It is not safe for concurrent use.
type holdLog struct{ logged map[string]bool }

func (h *holdLog) log(log *slog.Logger, e reconcile.Event) {
	if e.Kind != reconcile.Passed || e.Err != nil || e.Report.Error != "" {
		return
	}
	now := map[string]bool{}
	for _, one := range e.Report.Holds(metav1.Time{}) {
		fresh := false
		for _, key := range one.Keys {
			now[key] = true
			fresh = fresh || !h.logged[key]
		}
		if !fresh {
			continue
		}
		log := log.With("revision", e.Revision, "action", one.Action, "guard", one.Guard, "count", one.Count, "objects", one.Objects, "reason", one.Reason)
		if one.Digest != "" {
			log = log.With("digest", one.Digest)
		}
		log.Warn("held")
	}
	h.logged = now
}
