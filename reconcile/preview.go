package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"headgate.dev/headgate/reconcile/baseline"
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
	if err != nil {
		return report.Failed(r.Sync, after.Revision, err), err
	}
	if broken != nil {
		return report.Repaired(r.Sync, after, c.Before.Revision, broken), nil //nolint:nilerr // this pull request is not to blame, and that is said
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
	c.Approvals, c.At = place.Approvals, metav1.Now()
	return report.Compared(p, c), nil
}

// comparing is a Reconciler that only compares commits: the service of a conversion webhook need not be known for that.
func (r Reconciler) comparing() Reconciler {
	if r.Options.Conversion.Strategy == render.ConversionSafe {
		r.Options.Conversion.Strategy = render.ConversionUnknown
	}
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

// A PreviewPublisher publishes the preview of a pull request on its forge.
type PreviewPublisher interface {
	Pending(ctx context.Context, of report.Report) error
	Publish(ctx context.Context, r report.Report) error
}

// An Approver is a PreviewPublisher that knows what people approved. Its reports answer them.
type Approver interface {
	Approvals(ctx context.Context, r report.Report) ([]report.Approved, error)
}

// A Merge is a merge to preview.
type Merge struct {
	History    History
	Into, Head string
	Publisher  PreviewPublisher // nil: the preview is not published
	// Elsewhere previews the merge of two commits that are fetched, in another process; nil: this process does.
	Elsewhere func(ctx context.Context, into, head string) (report.Report, error)
	// Again reports whether the caller tries again after an error, so that the error is not published; nil: never.
	Again  func(error) bool
	FailOn report.Threshold // what the status and the exit code fail on
}

// Merging previews a merge and publishes the preview or its error.
func (r Reconciler) Merging(ctx context.Context, m Merge) (report.Report, error) {
	again := func(err error) bool { return m.Again != nil && m.Again(err) }
	if m.Publisher != nil {
		// Any other problem would block the final status, too.
		if err := m.Publisher.Pending(ctx, report.Failed(r.Sync, "", errors.New("stopped"))); err != nil && again(unpublished{err}) {
			return report.Report{}, unpublished{err}
		}
	}
	said, err := r.merged(ctx, m)
	if err != nil {
		said = report.Failed(r.Sync, said.Revision, err)
	}
	said = said.On(m.FailOn)
	if m.Publisher == nil || err != nil && again(err) {
		return said, err
	}
	if by, ok := m.Publisher.(Approver); ok {
		given, unheard := by.Approvals(ctx, said)
		if unheard != nil { // nothing counts as approved
			said.Findings = append(said.Findings, manifest.Finding{
				Rule: "approval", Severity: manifest.Warning, Message: "approvals on the forge do not count, because they could not be read: " + unheard.Error(),
				Fix: "give the token the rights that it needs, or approve in " + render.ApprovalsFile,
			})
			err = errors.Join(err, unpublished{unheard})
		}
		said = said.Approve(given).On(m.FailOn)
	}
	if unsaid := publish(ctx, m.Publisher, said); unsaid != nil {
		err = errors.Join(err, unpublished{unsaid})
	}
	return said, err
}

// publish publishes a report, which quotes what others wrote. A panic becomes an error.
func publish(ctx context.Context, by PreviewPublisher, r report.Report) (err error) {
	defer recoverInto(&err)
	return by.Publish(ctx, r)
}

// unpublished is an error of a PreviewPublisher.
type unpublished struct{ error }

func (e unpublished) Unwrap() error { return e.error }

// merged returns the preview of a merge. It recovers from a panic, which the author of the head may have caused.
func (r Reconciler) merged(ctx context.Context, m Merge) (said report.Report, err error) {
	defer recoverInto(&err)
	if m.Elsewhere != nil {
		into, err := m.History.Resolve(ctx, m.Into)
		if err != nil {
			return said, unfetched{err}
		}
		head, err := m.History.Resolve(ctx, m.Head)
		if err != nil {
			return said, unfetched{err}
		}
		return m.Elsewhere(ctx, into, head)
	}
	left, err := m.History.MergeBase(ctx, m.Into, m.Head)
	if err != nil {
		return said, unfetched{err}
	}
	of := Pull{Base: left, Head: m.Head}
	now, err := m.History.Resolve(ctx, m.Into)
	if err != nil {
		return said, unfetched{err}
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
