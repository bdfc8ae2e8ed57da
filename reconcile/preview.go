package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Pull names the commits of a pull request.
type Pull struct {
	Base   string // the merge base
	Head   string // with the target merged in, where the forge has made that
	Target string // as it is now; "" where it did not go on
}

// Preview returns what merging a pull request does. It needs no cluster; where the Reconciler
// has one, that is asked for counts and for what is active, and no more.
func (r Reconciler) Preview(ctx context.Context, of Pull) (report.Report, error) {
	r = r.comparing()
	var c report.Comparison
	var err error
	var broken catalogue.Errors
	if c.Before, err = r.Render(ctx, of.Base); err != nil && !errors.As(err, &broken) {
		return report.Report{}, fmt.Errorf("base: %w", err)
	}
	after, err := r.Render(ctx, of.Head)
	outage := cmp.Or(outageOf(err), outageOf(broken.OrNil()))
	switch {
	case err != nil && broken != nil && err.Error() == broken.Error():
		return report.Unrepaired(r.Sync, after.Revision, of.Base, err).Awaiting(outage), err
	case err != nil:
		return report.Failed(r.Sync, after.Revision, err).Awaiting(outage), err
	case broken != nil: // this pull request is not to blame, and the report states that
		return report.Repaired(r.Sync, after, c.Before.Revision, broken).Awaiting(outage), nil //nolint:nilerr // see above
	}
	if of.Target != "" {
		if now, err := r.Render(ctx, of.Target); err == nil { // else it is not this pull request that is to blame
			c.Now = &now
		}
	}
	place := baseline.Baseline{Base: c.Before, Sync: r.Sync, Terms: r.Terms, Approvals: c.Before.Approvals}
	if c.Now != nil {
		place.Approvals = c.Now.Approvals
	}
	if r.Observer != nil {
		c.Live, place.Counts = true, r.Observer.Answer
		if c.Present, err = r.present(ctx, report.Opens(c.Before, after)); err != nil {
			return report.Report{}, err
		}
	}
	p, err := r.Plan(ctx, after, place)
	if err != nil {
		return report.Report{}, err
	}
	if r.Observer != nil {
		if c.Controls, err = r.controls(ctx, p.Bumps); err != nil {
			return report.Report{}, err
		}
	}
	c.Approvals, c.At = place.Approvals, metav1.Now()
	return report.Compared(p, c), nil
}

// controls asks the cluster about the CRDs of packages that get another version.
func (r Reconciler) controls(ctx context.Context, of []plan.Bump) (map[manifest.ID]plan.Answer, error) {
	var questions []plan.Question
	for _, b := range of {
		if b.By != (manifest.ID{}) {
			questions = append(questions, plan.Question{Ask: plan.Controls, Of: b.By})
		}
	}
	if len(questions) == 0 {
		return nil, nil
	}
	answers, err := r.Observer.Answer(ctx, questions)
	all := make(map[manifest.ID]plan.Answer, len(answers))
	for q, a := range answers {
		all[q.Of] = a
	}
	return all, err
}

// comparing is a Reconciler that only compares commits: the service of a conversion webhook need not be known for that.
func (r Reconciler) comparing() Reconciler {
	if r.Options.Conversion.Strategy == render.ConversionSafe {
		r.Options.Conversion.Strategy = render.ConversionUnknown
	}
	r.Options.Compares = true
	return r
}

// present reports which definitions have a CRD in the cluster.
func (r Reconciler) present(ctx context.Context, names []string) (map[string]bool, error) {
	questions := make([]plan.Question, len(names))
	for i, name := range names {
		questions[i] = plan.Question{Ask: plan.Present, Of: plan.CRD(name)}
	}
	answers, err := r.Observer.Answer(ctx, questions)
	present := make(map[string]bool, len(names))
	for q, a := range answers {
		present[q.Of.Name] = a.Count > 0
	}
	return present, err
}

// Moved reports whether two commits differ in what decides what is active.
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

// An Approver is a PreviewPublisher that knows what people approved, by sync. Its reports answer them.
type Approver interface {
	Approvals(ctx context.Context, all report.Combined) (map[inventory.Sync][]report.Approved, error)
}

// A Merge is a merge to preview.
type Merge struct {
	History    History
	Into, Head string
	Publisher  PreviewPublisher // nil: the preview is not published
	// Elsewhere previews the merge of two commits that are fetched, in another process; nil: this process does.
	Elsewhere func(ctx context.Context, into, head string) (report.Report, error)
	FailOn    report.Threshold // what the status and the exit code fail on

	// Waits are the durations to wait before each retry of a preview whose registry cannot be reached. After the last one, the preview
	// reports the outage.
	Waits []time.Duration
}

// Merging previews a merge and publishes the preview or its error.
func (r Reconciler) Merging(ctx context.Context, m Merge) (report.Report, error) {
	one := onePreview{PreviewedSync{Reconciler: r}, m.FailOn, func(ctx context.Context) (report.Report, error) {
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

// An outage is a registry that cannot be reached, so that a preview is repeated later. The report shows what is known without it;
// err is the error of the registry.
type outage struct {
	why string
	err error
}

// Retry makes a preview. While a registry that it needs cannot be reached, it waits and makes it again. After the last wait it
// returns the outage.
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

// outageOf returns the text of an error that is about a registry that cannot be reached; "" for all others.
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

// waiting returns the outage that a preview reports as an error.
func waiting(r report.Report, err error) (report.Report, error) {
	if r.Outage != "" {
		err = outage{r.Outage, err}
	}
	return r, err
}

// A waiter is a PreviewPublisher that shows what a preview waits for.
type waiter interface {
	Waiting(ctx context.Context, why string) error
}

// onePreview is the preview of a merge for one sync.
type onePreview struct {
	PreviewedSync
	failOn report.Threshold
	make   func(context.Context) (report.Report, error)
}

// merging makes the previews of a merge and publishes them as one. It publishes nothing if again reports that an error may pass. A
// preview that was stopped ends it, because the others would meet the same head.
func merging(ctx context.Context, by PreviewPublisher, again func(PreviewedSync, error) bool, syncs []onePreview) (report.Combined, error) {
	all := report.Combined{Reports: []report.Report{{}}}
	if by != nil {
		// Any other problem would block the final status, too.
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
			err = out.err // the report shows the outage
		}
		if err != nil && r.Error == "" && !waits {
			r = report.Failed(one.Reconciler.Sync, r.Revision, err)
		}
		results, problems = append(results, r.On(one.failOn)), errors.Join(problems, err)
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

// approved returns previews with the approvals that people gave on the forge. If those cannot be read, none counts, and the
// previews report that.
func approved(ctx context.Context, by Approver, all report.Combined, syncs []onePreview) (report.Combined, error) {
	given, unheard := by.Approvals(ctx, all)
	results := slices.Clone(all.Reports)
	for i, r := range results {
		if unheard != nil && (len(results) == 1 || r.Approval != nil) {
			r.Findings = append(slices.Clone(r.Findings), manifest.Finding{
				Rule: "approval", Severity: manifest.Warning, Message: "approvals on the forge do not count, because they could not be read: " + unheard.Error(),
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

// publish publishes reports, which quote what others wrote. A panic becomes an error.
func publish(ctx context.Context, by PreviewPublisher, all report.Combined) (err error) {
	defer recoverInto(&err)
	return by.Publish(ctx, all)
}

// unpublished is an error of a PreviewPublisher.
type unpublished struct{ error }

func (e unpublished) Unwrap() error { return e.error }

// merged returns the preview of a merge. It recovers from a panic, which the author of the head may have caused.
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
		*err = panicked{value: p, stack: debug.Stack()}
	}
}

// A StoppedError is why the process was stopped that made a preview. The same commit would do it again.
type StoppedError struct{ Why string }

func (e StoppedError) Error() string { return report.PreviewStopped + e.Why }

// A Trouble is an error of a preview as another process gets it.
type Trouble struct {
	Text  string
	Of    string // what it is an error of: Commit, Source or Defect
	Stack string // of a defect
}

// The origins of a Trouble.
const (
	TroubleOfCommit = "commit"
	TroubleOfSource = "source"
	TroubleOfCode   = "defect"
)

// TroubleOf returns an error as another process gets it.
func TroubleOf(err error) Trouble {
	t := Trouble{Text: err.Error()}
	var defect panicked
	var away unfetched
	switch {
	case errors.As(err, &defect):
		t.Of, t.Text, t.Stack = TroubleOfCode, fmt.Sprint(defect.value), string(defect.stack)
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
		return panicked{t.Text, []byte(t.Stack)}
	case TroubleOfSource:
		return unfetched{err}
	case TroubleOfCommit:
		return catalogue.Errors{{Err: err}}
	}
	return err
}

// panicked is the error of a preview that panicked.
type panicked struct {
	value any
	stack []byte
}

// Stack returns the panic and where it happened.
func (p panicked) Stack() string { return fmt.Sprintf("%v\n%s", p.value, p.stack) }

// Error is one line: what manifest.Each panics with has a stack below, which is not for comments.
func (p panicked) Error() string {
	what, _, _ := strings.Cut(fmt.Sprint(p.value), "\n")
	return "the preview ended in a defect of Headgate: " + what
}
