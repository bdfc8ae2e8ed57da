package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Pull names the commits of a pull request.
type Pull struct {
	Base   string // the merge base
	Head   string // the merge with the target, if the forge has made it
	Target string // the newest commit of the target; "" if it is Base
}

// Preview returns what merging a pull request would do. It needs no cluster. If the Reconciler has one, it is asked only for counts
// and for what is active.
func (r Reconciler) Preview(ctx context.Context, of Pull) (report.Report, error) {
	r = r.comparing()
	base := r.Source
	var c report.Comparison
	var err error
	var broken catalogue.Errors
	if c.Before, err = r.Render(ctx, of.Base); err != nil && !errors.As(err, &broken) {
		return report.Report{}, fmt.Errorf("base: %w", err)
	}
	r.Options.Before = c.Before.Policies
	named := c.Before.Named
	if of.Target != "" {
		now, err := r.Render(ctx, of.Target)
		if err == nil { // if the target is broken, the pull request is not to blame
			c.Now = &now
		}
		named = named.And(now.Named)
	}
	if r.Heads != nil {
		if r.Source, err = r.Heads(ctx, named); err != nil {
			return report.Report{}, err
		}
	}
	after, err := r.head(ctx, c.Before, of.Head)
	outage := cmp.Or(outageOf(err), outageOf(broken.OrNil()))
	alike := err != nil && broken != nil && err.Error() == broken.Error()
	switch {
	case alike && r.reads(ctx, base, of):
		return report.Unrepaired(r.Sync, after.Revision, of.Base, err).Awaiting(outage), err
	case err != nil:
		return report.Failed(r.Sync, after.Revision, err).Awaiting(outage), err
	case broken != nil: // the pull request is not to blame, and the report says so
		made, err := r.alone(ctx, of.Head, after, of.Base, broken)
		return made.Awaiting(outage), err
	}
	place := baseline.Baseline{Base: c.Before, Sync: r.Sync, Terms: r.Terms, Approvals: c.Before.Approvals}
	if c.Now != nil {
		place.Approvals = c.Now.Approvals
	}
	if r.Observer != nil {
		c.Live, place.Counts = true, r.Observer.Answer
		if place.Known, err = r.present(ctx, report.Opens(c.Before, after)); err != nil {
			return report.Report{}, err
		}
		c.Present = map[string]bool{}
		for q := range place.Known {
			c.Present[q.About().Name], _ = question.Get(question.Known{Answers: place.Known}, question.Present{Of: q.About()})
		}
	}
	p, err := r.Plan(ctx, after, place)
	if err != nil {
		return report.Report{}, err
	}
	c.Approvals, c.At = place.Approvals, metav1.Now()
	return report.Compared(p, c).Into(r.Suspended), nil
}

// reads reports whether rendering the head of a pull request reads what rendering its base reads, which cannot be rendered.
func (r Reconciler) reads(ctx context.Context, base Source, of Pull) bool {
	before, err := base.Fetch(ctx, of.Base)
	if err != nil {
		return false
	}
	before = render.Recording(before)
	_, _ = r.render(ctx, before) // for what it reads
	after, err := r.Source.Fetch(ctx, of.Head)
	if err != nil {
		return false
	}
	after.Source = before.Source // the branch does not matter
	_, same := before.Read().Same(after)
	return same
}

// alone judges a commit whose base cannot be rendered: by everything that lint finds, because it is not known what is new.
func (r Reconciler) alone(ctx context.Context, ref string, want render.Desired, base string, why error) (report.Report, error) {
	found, err := r.Lint(ctx, ref)
	if err != nil {
		return report.Report{}, err
	}
	return report.Repaired(r.Sync, want, base, why, found.Findings, found.NotChecked), nil
}

// head renders the newer commit of a comparison. If crdOwner is Auto, an older commit with definitions decides who makes the CRDs: a
// pass over it records that, and later passes keep it.
func (r Reconciler) head(ctx context.Context, before render.Desired, ref string) (render.Desired, error) {
	want, err := r.Render(ctx, ref)
	if err == nil && len(before.Definitions) > 0 && want.Owner != before.Owner {
		r.Options.Owner = before.Owner
		return r.Render(ctx, ref)
	}
	return want, err
}

// comparing returns the Reconciler for a comparison of commits, for which the service of a conversion webhook need not be known.
func (r Reconciler) comparing() Reconciler {
	if r.Options.Conversion.Strategy == render.ConversionSafe {
		r.Options.Conversion.Strategy = render.ConversionUnknown
	}
	r.Options.Compares = true
	r.Guarding.OwnerIsSet = r.Options.Owner != render.OwnerAuto
	return r
}

// present asks which definitions have a CRD in the cluster.
func (r Reconciler) present(ctx context.Context, names []string) (question.Answers, error) {
	questions := make([]question.Any, len(names))
	for i, name := range names {
		questions[i] = question.Present{Of: plan.CRD(name)}
	}
	return r.Observer.Answer(ctx, questions)
}

// Moved reports whether two commits differ in what decides which definitions are active.
func (r Reconciler) Moved(ctx context.Context, from, to string) (bool, error) {
	before, err := r.Render(ctx, from)
	if err != nil {
		return false, err
	}
	now, err := r.Render(ctx, to)
	return err == nil && report.Moved(before, now) != "", err
}

// A History fetches commits of a repository and finds their common ancestors.
type History interface {
	Resolve(ctx context.Context, ref string) (string, error)
	MergeBase(ctx context.Context, a, b string) (string, error)
}

// A PreviewPublisher publishes the previews of a pull request on its forge.
type PreviewPublisher interface {
	Pending(ctx context.Context) error
	Publish(ctx context.Context, all report.Combined) error
}

// An Approver is a PreviewPublisher that can read what people approved, for each sync. Its reports answer these approvals.
type Approver interface {
	Approvals(ctx context.Context, all report.Combined) (map[inventory.Sync][]report.Approved, error)
}

// A Merge is a merge to preview.
type Merge struct {
	History    History
	Into, Head string
	Publisher  PreviewPublisher // nil does not publish the preview
	// Elsewhere previews the merge of two fetched commits in another process. If it is nil, this process does that.
	Elsewhere func(ctx context.Context, into, head string) (report.Report, error)
	FailOn    report.Threshold // what makes the status and the exit code fail

	// Waits are the delays before each retry of a preview whose registry cannot be reached. After the last one, the preview reports
	// the outage.
	Waits []time.Duration
}

// Merging previews a merge and publishes the preview or its error.
func (r Reconciler) Merging(ctx context.Context, m Merge) (report.Report, error) {
	one := onePreview{PreviewedSync{Reconciler: r}, into(m.Into), m.FailOn, func(ctx context.Context) (report.Report, error) {
		return waiting(r.merged(ctx, m))
	}}
	for try := 0; ; try++ {
		again := func(_ PreviewedSync, err error) bool { return try < len(m.Waits) && errors.As(err, new(outage)) }
		all, err := merging(ctx, m.Publisher, again, []onePreview{one})
		if !errors.As(err, new(outage)) {
			return all.Reports[0], err
		}
		if err := pause(ctx, m.Waits[try]); err != nil {
			return all.Reports[0], err
		}
	}
}

// An outage is the error of a preview whose registry cannot be reached, so that the preview is repeated later. The report shows
// what is known without the registry; err is the registry's error.
type outage struct {
	why string
	err error
}

// Retry makes a preview. If a registry that it needs cannot be reached, it waits and tries again. After the last wait, it returns
// the outage.
func Retry(ctx context.Context, waits []time.Duration, preview func(context.Context) (report.Report, error)) (report.Report, error) {
	for try := 0; ; try++ {
		r, err := preview(ctx)
		if try == len(waits) || r.Outage == "" && outageOf(err) == "" {
			return r, err
		}
		if err := pause(ctx, waits[try]); err != nil {
			return r, err
		}
	}
}

// outageOf returns the first line of an error about a registry that cannot be reached; "" for other errors.
func outageOf(err error) string {
	if passes, ok := errors.AsType[interface {
		error
		Outage() bool
	}](err); ok && passes.Outage() {
		why, _, _ := strings.Cut(err.Error(), "\n")
		return why
	}
	return ""
}

func (o outage) Error() string { return "waiting for a registry: " + o.why }

// waiting returns the outage in a preview's report as an error.
func waiting(r report.Report, err error) (report.Report, error) {
	if r.Outage != "" {
		err = outage{r.Outage, err}
	}
	return r, err
}

// A waiter is a PreviewPublisher that can show what a preview waits for.
type waiter interface {
	Waiting(ctx context.Context, why string) error
}

// onePreview is the preview of a merge for one sync.
type onePreview struct {
	PreviewedSync
	into   string // the branch of the merge; "" if it is not known
	failOn report.Threshold
	make   func(context.Context) (report.Report, error)
}

// into returns the branch that a ref names; "" if it names a commit.
func into(ref string) string {
	if commit.MatchString(ref) {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "origin/")
}

var commit = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// merging makes the previews of a merge and publishes them together. It publishes nothing if again reports that an error is
// transient. If a preview was stopped, it makes no further ones, because they would be stopped by the same head.
func merging(ctx context.Context, by PreviewPublisher, again func(PreviewedSync, error) bool, syncs []onePreview) (report.Combined, error) {
	all := report.Combined{Reports: []report.Report{{}}}
	if by != nil {
		// Other problems of the forge would prevent the final status, too.
		if err := by.Pending(ctx); err != nil && again(syncs[0].PreviewedSync, unpublished{err}) {
			return all, unpublished{err}
		}
	}
	var results []report.Report
	var problems error
	missed := 0
	for i, one := range syncs {
		r, err := one.make(ctx)
		out, waits := errors.AsType[outage](err)
		later := err != nil && again(one.PreviewedSync, err)
		if waits && !later {
			err = out.err // the report shows the outage itself
		}
		if err != nil && r.Error == "" && !waits {
			r = report.Failed(one.Reconciler.Sync, r.Revision, err)
		}
		results, problems = append(results, r.MergedInto(one.into).On(one.failOn)), errors.Join(problems, err)
		if by, shows := by.(waiter); later && waits && shows {
			if unsaid := by.Waiting(ctx, err.Error()); unsaid != nil {
				problems = errors.Join(problems, unpublished{unsaid})
			}
		}
		if later {
			return report.Combine(results), problems
		}
		if errors.As(err, new(StoppedError)) {
			missed = len(syncs) - i - 1
			break
		}
	}
	all = report.Combine(results)
	all.Missed = missed
	if by == nil {
		return all, problems
	}
	if asked, ok := by.(Approver); ok {
		var unheard error
		if all, unheard = approved(ctx, asked, all, syncs); unheard != nil {
			problems = errors.Join(problems, unpublished{unheard})
		}
	}
	if unsaid := publish(ctx, by, all); unsaid != nil {
		problems = errors.Join(problems, unpublished{unsaid})
	}
	return all, problems
}

// approved adds to previews the approvals that people gave on the forge. If these cannot be read, none of them count, and the
// previews say so.
func approved(ctx context.Context, by Approver, all report.Combined, syncs []onePreview) (report.Combined, error) {
	given, unheard := by.Approvals(ctx, all)
	results := slices.Clone(all.Reports)
	for i, r := range results {
		if unheard != nil && (len(results) == 1 || r.Approval != nil) {
			r.Findings = append(slices.Clone(r.Findings), manifest.Finding{
				Rule: "approval", Severity: manifest.Warning, About: manifest.About{}, Message: "approvals on the forge do not count, because they could not be read: " + unheard.Error(),
				Fix: "give the token the rights that it needs, or approve in " + render.ApprovalsFile,
			})
		}
		if j := slices.IndexFunc(syncs, func(one onePreview) bool { return one.Reconciler.Sync == r.Sync }); j >= 0 && (len(results) == 1 || r.Approval != nil) {
			r = r.Approve(given[r.Sync]).On(syncs[j].failOn)
		}
		results[i] = r
	}
	c := report.Combine(results)
	c.Missed = all.Missed
	return c, unheard
}

// publish publishes reports, which contain text of other authors. It turns a panic into an error.
func publish(ctx context.Context, by PreviewPublisher, all report.Combined) (err error) {
	defer recoverInto(&err)
	return by.Publish(ctx, all)
}

// unpublished is an error of a PreviewPublisher.
type unpublished struct{ error }

func (e unpublished) Unwrap() error { return e.error }

// merged returns the preview of a merge. It recovers from panics, which the author of the head may have caused.
func (r Reconciler) merged(ctx context.Context, m Merge) (result report.Report, err error) {
	defer recoverInto(&err)
	if m.Elsewhere != nil {
		into, err := m.History.Resolve(ctx, m.Into)
		if err != nil {
			return result, unfetched{err}
		}
		head, err := m.History.Resolve(ctx, m.Head)
		if err != nil {
			return result, unfetched{err}
		}
		return m.Elsewhere(ctx, into, head)
	}
	left, err := m.History.MergeBase(ctx, m.Into, m.Head)
	if err != nil {
		return result, unfetched{err}
	}
	of := Pull{Base: left, Head: m.Head}
	now, err := m.History.Resolve(ctx, m.Into)
	if err != nil {
		return result, unfetched{err}
	}
	if now != left {
		of.Target = now
	}
	return r.Preview(ctx, of)
}

// recoverInto turns a panic into an error. It must be deferred.
func recoverInto(err *error) {
	if p := recover(); p != nil {
		*err = engine.DefectError{What: "preview", Value: p, Trace: debug.Stack()}
	}
}

// A StoppedError is the error of a preview whose process was stopped. The same commit would be stopped again.
type StoppedError struct{ Why string }

func (e StoppedError) Error() string { return report.PreviewStopped + e.Why }

// A Trouble is the error of a preview in a form for another process.
type Trouble struct {
	Text  string
	Of    string // the cause: Commit, Source or Defect
	Stack string // of a defect
}

// The causes of a Trouble.
const (
	TroubleOfCommit = "commit"
	TroubleOfSource = "source"
	TroubleOfCode   = "defect"
)

// TroubleOf returns an error in a form for another process.
func TroubleOf(err error) Trouble {
	t := Trouble{Text: err.Error()}
	var defect engine.DefectError
	var away unfetched
	switch {
	case errors.As(err, &defect):
		t.Of, t.Text, t.Stack = TroubleOfCode, fmt.Sprint(defect.Value), string(defect.Trace)
	case errors.As(err, &away):
		t.Of = TroubleOfSource
	case ofCommit(err):
		t.Of = TroubleOfCommit
	}
	return t
}

// Err returns the error.
func (t Trouble) Err() error {
	err := errors.New(t.Text)
	switch t.Of {
	case TroubleOfCode:
		return engine.DefectError{What: "preview", Value: t.Text, Trace: []byte(t.Stack)}
	case TroubleOfSource:
		return unfetched{err}
	case TroubleOfCommit:
		return catalogue.Errors{{Err: err}}
	}
	return err
}
