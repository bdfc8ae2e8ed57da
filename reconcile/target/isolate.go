package target

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Heads of pull requests are previewed in a process of their own, because their content can take any amount of memory. That
// ends only this process and no pass. See ADR 53. The process has no credentials, no cluster and no network: it reads a clone
// and the cache of packages. Its parent asks registries and the cluster on its behalf.
//
//	parent ─ fetches, pulls, counts, publishes ◄── calls over a pipe ──► child ─ reads commits, renders, plans, reports

const (
	// MemoryOfPreviews is the default memory limit of a preview's process, in bytes.
	MemoryOfPreviews = 1 << 30
	// timeOfPreviews is the default time limit of a preview's process. It includes the work of the parent.
	timeOfPreviews = 10 * time.Minute
	// maxFromChild is the maximum number of bytes that a child may send: its report and questions.
	maxFromChild = 256 << 20
	// outOfMemory is the exit code if a watchdog ends the process.
	outOfMemory = 77
)

// Isolation configures how previews run in processes of their own.
type Isolation struct {
	// Command is the program and its arguments: Headgate, with arguments that make it call Child.
	Command []string
	// Memory is the memory limit of the process in bytes; default MemoryOfPreviews.
	Memory int64
	// Time is the time limit of the process; default 10 minutes.
	Time time.Duration
	// Memo is a directory in which the process caches facts about files for later processes of the same Program; "" for none.
	Memo, Program string
}

// A childJob is what a child previews.
type childJob struct {
	Sync       []byte // as JSON
	Clones     string // a directory
	Packages   string // a directory
	Object     int64  // size limit of Git objects, in bytes
	Into, Head string
	IsFork     bool
	Registries []string // of a fork
	Live       bool     // the parent has an Observer
	Reader     bool     // the parent has a ClusterReader
	Installed  bool
	Images     bool
	Memory     int64
	Approvals  []byte // JSON; if empty, no approvals count

	Memo, Program string // as in Isolation
}

// A childAnswer is the result of a childJob.
type childAnswer struct {
	Report  []byte // as JSON; may be empty
	Trouble *reconcile.Trouble
}

// A childQuestion is a question in a form for another process. A child can ask no others.
type childQuestion struct {
	Type  string // as in typesOfChild
	Of    manifest.ID
	After []byte // of question.Fits: as JSON
}

// typesOfChild make the questions of a preview by the names of their types.
var typesOfChild = map[string]func(of manifest.ID) question.Any{
	"question.Dependents": func(of manifest.ID) question.Any { return question.Dependents{Of: of} },
	"question.Stored":     func(of manifest.ID) question.Any { return question.Stored{Of: of} },
	"question.Present":    func(of manifest.ID) question.Any { return question.Present{Of: of} },
	"question.Controls":   func(of manifest.ID) question.Any { return question.Controls{Of: of} },
	"question.Fits":       func(of manifest.ID) question.Any { return question.Fits{Of: of} },
}

// forChild returns a question for another process.
func forChild(q question.Any) (childQuestion, error) {
	asked := childQuestion{Type: fmt.Sprintf("%T", q), Of: q.About()}
	fits, is := q.(question.Fits)
	if !is {
		return asked, nil
	}
	u, err := fits.After.Content()
	if err != nil {
		return asked, err
	}
	asked.After, err = json.Marshal(u.Object)
	return asked, err
}

// question returns the question of a child.
func (q childQuestion) question() (question.Any, error) {
	typed, may := typesOfChild[q.Type]
	if !may {
		return nil, fmt.Errorf("a preview may not ask %q", q.Type)
	}
	asked := typed(q.Of)
	if fits, is := asked.(question.Fits); is {
		var object map[string]any
		if err := utiljson.Unmarshal(q.After, &object); err != nil {
			return nil, err
		}
		fits.After = plan.Decoded(&unstructured.Unstructured{Object: object})
		asked = fits
	}
	return asked, nil
}

// A childUnknown is a question.Unknown in a form for another process.
type childUnknown struct{ Why reason.Reason }

// answerForChild returns the answer to a question in a form for another process.
func answerForChild(q question.Any, a any) any {
	switch a := a.(type) {
	case nil:
		return q.Nothing()
	case question.Unknown:
		return childUnknown{reason.Of(a.Why)}
	}
	return a
}

// answerOfParent returns the answer of the other process.
func answerOfParent(a any) any {
	if unknown, is := a.(childUnknown); is {
		return question.Unknown{Why: reason.CodedError{Reason: unknown.Why}}
	}
	return a
}

// A childRequest is a request for a package.
type childRequest struct {
	Revision string
	Request  []byte // JSON
}

// A childImage is the answer to a childRequest.
type childImage struct {
	Version, Digest, Err string
	Outage               bool // of the registry
	Findings             []manifest.Finding
}

// register registers the types of a reason's values with gob.
var register = sync.OnceFunc(func() {
	for _, v := range []any{manifest.ID{}, manifest.Origin{}, schema.Change{}, reason.Reason{}, []any{}, []string{}, []reason.Reason{}, []manifest.ID{}, map[string]any{}, reason.Code(""), question.Counted{}, question.Misfits{}, childUnknown{}} {
		gob.Register(v)
	}
})

// A parent answers the questions of a child.
type parent struct {
	ctx    context.Context //nolint:containedctx // a call brings none
	job    childJob
	with   reconcile.Reconciler
	from   *Wired
	answer chan childAnswer
	listed []string // registries that every head may name

	mu       sync.Mutex
	packages *registry.Resolver
	limited  bool // to what the target names
}

// methods returns what a child may call.
func (p *parent) methods() map[string]method {
	return map[string]method{
		"Job": methodOf(p.Job), "Done": methodOf(p.Done), "Count": methodOf(p.Count), "Owner": methodOf(p.Owner),
		"Definitions": methodOf(p.Definitions), "Policies": methodOf(p.Policies), "Installed": methodOf(p.Installed),
		"Images": methodOf(p.Images), "Head": methodOf(p.Head), "Package": methodOf(p.Package),
	}
}

// Job returns the job of the child.
func (p *parent) Job(_ bool, to *childJob) error {
	*to = p.job
	return nil
}

// Done receives the answer of the child.
func (p *parent) Done(a childAnswer, _ *bool) error {
	select {
	case p.answer <- a:
	default:
	}
	return nil
}

// Count answers questions of guards.
func (p *parent) Count(asked []childQuestion, to *[]any) error {
	questions := make([]question.Any, len(asked))
	for i, q := range asked {
		var err error
		if questions[i], err = q.question(); err != nil {
			return err
		}
	}
	answers, err := p.with.Observer.Answer(p.ctx, questions)
	if err != nil {
		return err
	}
	for _, q := range questions {
		*to = append(*to, answerForChild(q, answers[q]))
	}
	return nil
}

// Owner returns the owner of CRDs in the cluster.
func (p *parent) Owner(_ bool, to *render.Owner) (err error) {
	*to, err = p.with.Cluster.Owner(p.ctx)
	return err
}

// Definitions returns the definitions of the cluster, as JSON.
func (p *parent) Definitions(_ bool, to *[]byte) error {
	return sendJSON(to, func() (any, error) { return p.with.Cluster.Definitions(p.ctx) })
}

// Policies returns the policies of the cluster, as JSON.
func (p *parent) Policies(_ bool, to *[]byte) error {
	return sendJSON(to, func() (any, error) { return p.with.Cluster.Policies(p.ctx) })
}

// Installed returns the packages in the cluster as JSON: null if there is no Crossplane.
func (p *parent) Installed(_ bool, to *[]byte) error {
	return sendJSON(to, func() (any, error) {
		all, err := p.from.packages.Installed(p.ctx)
		if all == nil {
			return nil, err
		}
		list := make([]installed, len(all))
		for i, one := range all {
			list[i] = installed(one)
		}
		return list, err
	})
}

// An installed is a crossplane.Installed with all of its fields exported.
type installed struct{ Source, Version, Revision string }

// Images returns the ImageConfigs of the cluster, as JSON.
func (p *parent) Images(_ bool, to *[]byte) error {
	return sendJSON(to, func() (any, error) { return p.from.packages.Images(p.ctx) })
}

func sendJSON(to *[]byte, get func() (any, error)) error {
	v, err := get()
	if err != nil {
		return err
	}
	*to, err = json.Marshal(v)
	return err
}

// Head limits everything that follows to what the target of the pull request names. The child calls it before it reads the head,
// so that no content of the head can change the limits.
func (p *parent) Head(target packages.Named, _ *bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limited {
		return errors.New("the limits of a head do not change")
	}
	head, err := p.packages.Head(p.ctx, target, p.listed)
	if err != nil {
		return err
	}
	p.packages, p.limited = head, true
	return nil
}

func (p *parent) resolver() *registry.Resolver {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.packages
}

// Package puts a package into the cache.
func (p *parent) Package(of childRequest, to *childImage) error {
	var r packages.Request
	if err := json.Unmarshal(of.Request, &r); err != nil {
		return err
	}
	i, err := p.resolver().Answer(p.ctx, of.Revision, r)
	if err != nil {
		return err
	}
	*to = childImage{Version: i.Version, Digest: i.Digest, Findings: i.Findings}
	if i.Err != nil {
		to.Err, to.Outage = i.Err.Error(), catalogue.Unread{Err: i.Err}.Outage()
	}
	return nil
}

// Previewing returns a function that previews the merge of two commits of a clone in another process. with configures the passes of
// the Sync. forks holds the settings of the Sync for forks if the head is in one; otherwise nil.
func (by *Isolation) Previewing(s v1alpha1.Sync, clone *git.Repository, with *Wired, forks *v1alpha1.ForkPreviews) (func(ctx context.Context, into, head string) (report.Report, error), error) {
	s.Spec.Source.Repo, s.Spec.Source.Path = git.Plain(clone.URL), clone.Path
	sync, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	clones, err := clone.Clones()
	if err != nil {
		return nil, err
	}
	j := childJob{
		Sync: sync, Clones: clones, Object: clone.Limits.Object, Memo: by.Memo, Program: by.Program,
		Live: with.Observer != nil, Reader: with.Reconciler.Cluster != nil,
		Installed: with.packages.Installed != nil && forks == nil, Images: with.packages.Images != nil,
	}
	if forks != nil {
		j.IsFork, j.Registries = true, forks.Registries
	}
	return func(ctx context.Context, into, head string) (report.Report, error) {
		j := j
		j.Into, j.Head = into, head
		if with.Approvals != nil {
			given, err := json.Marshal(with.Approvals())
			if err != nil {
				return report.Report{}, err
			}
			j.Approvals = given
		}
		return by.preview(ctx, j, with.Reconciler, with, listed(s.Spec))
	}, nil
}

// preview previews a merge in another process.
func (by *Isolation) preview(ctx context.Context, j childJob, with reconcile.Reconciler, from *Wired, listed []string) (report.Report, error) {
	limit, memory := cmp.Or(by.Time, timeOfPreviews), cmp.Or(by.Memory, MemoryOfPreviews)
	register()
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	target, err := from.packages.Within(nil)
	if err != nil {
		return report.Report{}, err
	}
	j.Packages, j.Memory = target.Cache, memory
	p := &parent{ctx: within, job: j, with: with, from: from, answer: make(chan childAnswer, 1), listed: listed, packages: target}
	child := exec.CommandContext(within, by.Command[0])
	child.Args = by.Command
	if path, err := os.Executable(); err == nil && by.Command[0] == "headgate" {
		child.Path, child.Err = path, nil
	}
	child.Env = []string{fmt.Sprintf("GOMEMLIMIT=%d", memory*3/4), "GOTRACEBACK=none", "TMPDIR=" + os.TempDir()}
	var stderr tail
	child.Stderr = &stderr
	in, err := child.StdinPipe()
	if err != nil {
		return report.Report{}, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return report.Report{}, err
	}
	if err := child.Start(); err != nil {
		return report.Report{}, fmt.Errorf("cannot start the process that makes the preview: %w", err)
	}
	serve(io.LimitReader(out, maxFromChild), in, p.methods())
	_ = in.Close() // the child ends if it has not yet
	late := within.Err() != nil
	cancel() // also ends a child that has sent too much
	ended := child.Wait()
	select {
	case a := <-p.answer:
		return a.read()
	default:
	}
	if err := ctx.Err(); err != nil {
		return report.Report{}, err
	}
	if code := child.ProcessState.ExitCode(); !late && code == 1 { // it ended without a signal
		return report.Report{}, fmt.Errorf("the process that makes the preview failed: %s", stderr.line())
	}
	why := strings.TrimSuffix(fmt.Sprintf("its process ended early (%v): %s", ended, stderr.line()), ": ")
	switch {
	case late:
		why = fmt.Sprintf("over the time limit of %s", limit)
	case stderr.outOfMemory() || child.ProcessState.ExitCode() == outOfMemory:
		why = "over the memory limit of " + sizeOf(memory)
	}
	return report.Report{}, reconcile.StoppedError{Why: why}
}

func sizeOf(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// read returns the report and the error of an answer.
func (a childAnswer) read() (r report.Report, err error) {
	if len(a.Report) > 0 {
		if r, err = report.Receive(a.Report); err != nil {
			return report.Report{}, fmt.Errorf("the process that makes the preview returned no valid report: %w", err)
		}
	}
	if a.Trouble != nil {
		err = a.Trouble.Err()
	}
	return r, err
}

// A tail keeps the first bytes of a process's output.
type tail struct{ bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	if room := 64<<10 - t.Len(); room > 0 {
		_, _ = t.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// line returns the first line.
func (t *tail) line() string {
	line, _, _ := strings.Cut(t.String(), "\n")
	return strings.TrimPrefix(line, "error: ")
}

// outOfMemory reports whether the output is that of Go's runtime without memory. Its text depends on the place. The garbage
// collector of Go 1.26 does not check whether it got memory for a queue (newSpanSPMC in runtime/mgcmark_greenteagc.go), so one such
// process in twenty ends with a segmentation fault of the runtime. A nil pointer in our own code is a panic, whose output differs.
func (t *tail) outOfMemory() bool {
	output := t.String()
	for _, what := range []string{
		"out of memory", "cannot allocate memory", "cannot allocate heap", "failed to create new OS thread", "runtime: cannot",
		"SIGSEGV: segmentation violation\nPC=",
	} {
		if strings.Contains(output, what) {
			return true
		}
	}
	return false
}

// Child makes the preview that a parent requests over a pipe. limit is the memory limit of the process, which applies before
// anything is read.
func Child(ctx context.Context, from io.Reader, to io.WriteCloser) error {
	if err := boundProcess(MemoryOfPreviews); err != nil {
		return err
	}
	register()
	client := newCaller(from, to)
	defer to.Close()
	var j childJob
	if err := client.Call("Job", true, &j); err != nil {
		return err
	}
	if j.Memory < MemoryOfPreviews {
		if err := boundProcess(j.Memory); err != nil {
			return err
		}
	}
	var a childAnswer
	result, err := remote{client}.preview(ctx, j)
	if err != nil {
		t := reconcile.TroubleOf(err)
		a.Trouble = &t
	}
	if result.Kind != "" {
		if a.Report, err = report.Send(result); err != nil {
			return err
		}
	}
	return client.Call("Done", a, new(bool))
}

// A remote is the child's access to its parent.
type remote struct{ *caller }

func (r remote) preview(ctx context.Context, j childJob) (report.Report, error) {
	var s v1alpha1.Sync
	if err := json.Unmarshal(j.Sync, &s); err != nil {
		return report.Report{}, err
	}
	clone := &git.Repository{
		URL: s.Spec.Source.Repo, Path: s.Spec.Source.Path, Cache: j.Clones, Fetched: true, Limits: git.Limits{Object: j.Object},
	}
	how := How{Compares: true}
	if j.IsFork {
		how.Fork = &registry.Fork{Registries: j.Registries}
	}
	in := Surroundings{Packages: j.Packages, Offline: true, Memo: new(memo.Memory)}
	if j.Memo != "" {
		kept := memo.Open(j.Memo, j.Program, s.Spec.Source.Repo, s.Spec.Source.Path)
		defer kept.Close() // an error only costs time later
		in.Memo = kept
	}
	w, err := Wire(s, clone, in, how)
	if err != nil {
		return report.Report{}, err
	}
	defer w.Close()
	w.Approvals = nil
	if len(j.Approvals) > 0 {
		var given approval.Given
		if err := json.Unmarshal(j.Approvals, &given); err != nil {
			return report.Report{}, err
		}
		w.Approvals = func() approval.Given { return given }
	}
	if j.Live {
		w.Observer = r
	}
	if j.Reader {
		w.Reconciler.Cluster = r
	}
	if j.Installed {
		w.packages.Installed = r.installed
	}
	if j.Images {
		w.packages.Images = r.images
	}
	if !j.IsFork {
		w.Heads = func(_ context.Context, target packages.Named) (reconcile.Source, error) {
			return w.packages, r.Call("Head", target, new(bool))
		}
	}
	w.packages.Ask = func(_ context.Context, of packages.Request) (packages.Image, error) { return r.ask(j.Head, of) }
	return w.Merging(ctx, reconcile.Merge{History: clone, Into: j.Into, Head: j.Head})
}

// Observe is never called, because a preview observes a commit.
func (r remote) Observe(context.Context, render.Desired) (facts.Observed, error) {
	return facts.Observed{}, errors.New("a preview does not observe a cluster")
}

// Answer makes the parent count.
func (r remote) Answer(_ context.Context, questions []question.Any) (question.Answers, error) {
	asked := make([]childQuestion, len(questions))
	for i, q := range questions {
		var err error
		if asked[i], err = forChild(q); err != nil {
			return nil, err
		}
	}
	var answers []any
	if err := r.Call("Count", asked, &answers); err != nil {
		return nil, err
	}
	all := make(question.Answers, len(questions))
	for i, q := range questions[:min(len(questions), len(answers))] {
		all[q] = answerOfParent(answers[i])
	}
	return all, nil
}

// Owner makes the parent ask the cluster.
func (r remote) Owner(context.Context) (owner render.Owner, err error) {
	err = r.Call("Owner", true, &owner)
	return owner, err
}

// Definitions makes the parent ask the cluster.
func (r remote) Definitions(context.Context) (all []*catalogue.Definition, err error) {
	err = r.getJSON("Definitions", &all)
	return all, err
}

// Policies makes the parent ask the cluster.
func (r remote) Policies(context.Context) (all map[string]crossplane.LivePolicy, err error) {
	err = r.getJSON("Policies", &all)
	return all, err
}

func (r remote) installed(context.Context) (all []crossplane.Installed, err error) {
	var got []installed
	if err := r.getJSON("Installed", &got); err != nil || got == nil {
		return nil, err
	}
	all = make([]crossplane.Installed, len(got))
	for i, one := range got {
		all[i] = crossplane.Installed(one)
	}
	return all, nil
}

func (r remote) images(context.Context) (all []packages.LiveConfig, err error) {
	err = r.getJSON("Images", &all)
	return all, err
}

func (r remote) getJSON(method string, to any) error {
	var got []byte
	if err := r.Call(method, true, &got); err != nil {
		return err
	}
	return utiljson.Unmarshal(got, to)
}

// An outage is the error of a registry that may answer later, in a form for another process.
type outage struct{ error }

func (outage) Outage() bool { return true }

func (r remote) ask(revision string, of packages.Request) (packages.Image, error) {
	raw, err := json.Marshal(of)
	if err != nil {
		return packages.Image{}, err
	}
	var got childImage
	if err := r.Call("Package", childRequest{revision, raw}, &got); err != nil {
		return packages.Image{}, err
	}
	i := packages.Image{Version: got.Version, Digest: got.Digest, Findings: got.Findings}
	if got.Err != "" {
		i.Err = errors.New(got.Err)
		if got.Outage {
			i.Err = outage{i.Err}
		}
	}
	return i, nil
}
