// Package reconcile makes one pass over one target: it fetches a commit, renders what
// it wants, observes what is there, plans, applies and reports.
//
//	ref ─Fetch─► Input ─Render─► Desired ─┬─────────────► Compute ─► Plan ─Apply─► Outcomes ─New─► Report
//	                                      └─Observe─► Observed ─┘
package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Source fetches a commit. ref is a branch, a tag or a commit; "" is the default.
type Source interface {
	Fetch(ctx context.Context, ref string) (render.Input, error)
}

// An Observer looks at a place: a cluster, or a commit taken for one. Observe reads
// what is there of what is wanted or owned, Answer counts what guards ask for.
type Observer interface {
	Observe(ctx context.Context, want render.Desired) (plan.Observed, error)
	Answer(ctx context.Context, questions []plan.Question) (map[plan.Question]plan.Answer, error)
}

// An Applier carries out a plan. It may refuse a step, and adds nothing. Where what
// the plan was made from is not the case any more, it writes nothing and returns
// plan.ErrMoved.
type Applier interface {
	Apply(ctx context.Context, p plan.Plan) ([]plan.Outcome, error)
}

// A Place knows what has to be known of it before a commit is rendered for it.
type Place interface {
	// Owner says who makes the CRDs of definitions there; "" is that it cannot tell.
	Owner(ctx context.Context) (render.Owner, error)
	// Definitions are those that are there already.
	Definitions(ctx context.Context) ([]*catalogue.Definition, error)
}

// A Recorder remembers what passes came to, where that is news.
type Recorder interface {
	Record(ctx context.Context, p plan.Past) error
}

// A Reconciler makes passes over one target.
type Reconciler struct {
	Source   Source
	Observer Observer
	Applier  Applier  // nil where somebody else applies, and passes only look
	Place    Place    // nil where passes know no cluster
	Recorder Recorder // nil: nobody does
	Options  render.Options
	Guarding plan.Guarding
	Terms    plan.Terms   // as the Observer has them
	Fights   []plan.Fight // of the passes before
	Sync     plan.Sync

	// Approvals are asked before every plan for the digests that a person gave, by the places that
	// could be read; nil: none could.
	Approvals func() plan.Approvals
	// CA is asked before every pass for that of conversion webhooks, so that it may change;
	// nil: it is in Options.
	CA      func(ctx context.Context) ([]byte, error)
	Shrinks bool          // passes take back, and do nothing else
	Live    bool          // definitions of the cluster count beside those of the commit
	Timeout time.Duration // how long checks may take to hold; default 5 minutes
	// Grace is how long something may look broken, or missing, after the last change that Crossplane
	// made; default 10 seconds.
	Grace  time.Duration
	NoWait bool // do not wait for them
}

// Render fetches a commit and renders what it wants. Of a commit that cannot be
// rendered the revision is known all the same.
func (r Reconciler) Render(ctx context.Context, ref string) (render.Desired, error) {
	in, err := r.Source.Fetch(ctx, ref)
	if err != nil {
		return render.Desired{}, unfetched{err}
	}
	return r.render(ctx, in)
}

func (r Reconciler) render(ctx context.Context, in render.Input) (render.Desired, error) {
	how, err := r.options(ctx)
	if err != nil {
		return render.Desired{Revision: in.Revision}, err
	}
	want, err := render.Render(in, how)
	want.Revision = in.Revision
	return want, err
}

// options are those to render a commit with, once the place was asked.
func (r Reconciler) options(ctx context.Context) (render.Options, error) {
	how := r.Options
	var err error
	if how.Owner == render.OwnerAuto && r.Place != nil {
		owner, err := r.Place.Owner(ctx)
		if err != nil {
			return how, err
		}
		how.Owner = cmp.Or(owner, render.OwnerAuto) // then the commit decides
	}
	if r.CA != nil {
		if how.Conversion.CABundle, err = r.CA(ctx); err != nil {
			return how, err
		}
	}
	if r.Live && r.Place != nil {
		how.Live, err = r.Place.Definitions(ctx)
	}
	return how, err
}

// Plan says what a pass would do to a place.
func (r Reconciler) Plan(ctx context.Context, want render.Desired, place Observer) (plan.Plan, error) {
	seen, err := place.Observe(ctx, want)
	if err != nil {
		return plan.Plan{}, err
	}
	seen.Fights = r.Fights
	if r.Approvals != nil {
		seen.Approvals = r.Approvals()
	}
	guards := r.Guarding.Guards()
	p, err := plan.Compute(want, seen, guards...)
	// What is approved may have another guard ask, once it passes the first.
	for round := 0; err == nil && len(p.Open()) > 0 && round < rounds; round++ {
		answers, failed := place.Answer(ctx, p.Open())
		if failed != nil {
			return plan.Plan{}, failed
		}
		seen.Answers = merged(seen.Answers, answers)
		p, err = plan.Compute(want, seen, guards...)
	}
	if r.Shrinks {
		p = p.Shrinking()
	}
	return p, err
}

// rounds bounds how often guards may ask more after they were answered.
const rounds = 5

func merged(a, b map[plan.Question]plan.Answer) map[plan.Question]plan.Answer {
	all := make(map[plan.Question]plan.Answer, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// Diff says what Run would do to the cluster.
func (r Reconciler) Diff(ctx context.Context, ref string) (report.Report, error) {
	want, err := r.Render(ctx, ref)
	if err != nil {
		return report.Report{}, err
	}
	p, err := r.Plan(ctx, want, r.Observer)
	if err != nil {
		return report.Report{}, err
	}
	return report.New(p, nil, false), nil
}

// Compare says what changes from one commit to another, without a cluster.
func (r Reconciler) Compare(ctx context.Context, base, head string) (report.Report, error) {
	before, err := r.Render(ctx, base)
	if err != nil {
		return report.Report{}, fmt.Errorf("base: %w", err)
	}
	after, err := r.Render(ctx, head)
	if err != nil {
		return report.Report{}, err
	}
	p, err := r.Plan(ctx, after, plan.Baseline{Base: before, Sync: r.Sync, Terms: r.Terms})
	if err != nil {
		return report.Report{}, err
	}
	return report.New(p, nil, false), nil
}

// attempts bounds how often one pass plans again because someone else was quicker.
const attempts = 3

// Run makes one pass: after it the cluster holds what the commit wants, as far as
// guards and the API server allow. The report is whole also where an error is returned.
func (r Reconciler) Run(ctx context.Context, ref string) (report.Report, error) {
	began := time.Now()
	in, err := r.Source.Fetch(ctx, ref)
	if err != nil {
		said := report.Failed(r.Sync, "", err)
		r.record(ctx, began, said, plan.NoEnding)
		return said, err
	}
	said, err := r.Bring(ctx, Pass{Render: func(ctx context.Context) (render.Desired, error) { return r.render(ctx, in) }})
	r.record(ctx, began, said, plan.NoEnding)
	return said, err
}

// recording is how long it may take to remember what a pass came to, also where it was stopped.
const recording = 5 * time.Second

// record has the cluster remember what a pass came to. A history with a gap is no trouble of the
// pass: what it came to is said elsewhere.
func (r Reconciler) record(ctx context.Context, began time.Time, said report.Report, ends plan.Ending) {
	if r.Recorder == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recording)
	defer cancel()
	now := time.Now()
	past := said.Past(metav1.NewTime(now.UTC().Truncate(time.Second)), metav1.Duration{Duration: now.Sub(began).Round(time.Millisecond)})
	past.Ends = ends
	_ = r.Recorder.Record(ctx, past)
}

// A Pass is what Bring has to know of one.
type Pass struct {
	// Render renders the commit; it is asked again while packages may bring definitions.
	Render func(context.Context) (render.Desired, error)
	// Before hears of every plan before it is carried out; nil is nobody.
	Before func(plan.Plan)
	// Late remembers, from one pass to the next, checks that were waited for in vain: a look
	// is enough. It may be nil.
	Late map[manifest.ID]bool
}

// Bring brings the cluster to what a commit wants, as far as guards and the API server
// allow. The report is whole also where an error is returned.
func (r Reconciler) Bring(ctx context.Context, pass Pass) (report.Report, error) {
	if r.Applier == nil {
		return r.look(ctx, pass)
	}
	want, err := pass.Render(ctx)
	if err != nil {
		return report.Failed(r.Sync, want.Revision, err), err
	}
	var p plan.Plan
	var done []plan.Outcome // of all attempts: what one wrote, the next one finds in place
	stopped := func(err error) (report.Report, error) {
		if len(done) == 0 {
			return report.Failed(r.Sync, want.Revision, err), err
		}
		made := report.New(p, done, true)
		made.Stop(err)
		return made, err
	}
	for attempt := 1; ; attempt++ {
		next, err := r.Plan(ctx, want, r.Observer)
		if err != nil {
			return stopped(err)
		}
		if pass.Before != nil {
			pass.Before(next)
		}
		if next, err = r.migrate(ctx, want, next); err != nil {
			return stopped(err)
		}
		more, err := r.Applier.Apply(ctx, next)
		p, done = next.Continued(p, done), append(done, more...)
		if errors.Is(err, plan.ErrMoved) && attempt < attempts {
			continue
		}
		p = p.Stranded(done)
		if err == nil && !r.NoWait {
			if done, err = r.settle(ctx, pass, &p, done); err == nil {
				done, err = r.waitOut(ctx, pass, done)
			}
		}
		made := report.New(p, done, true)
		if err != nil {
			made.Stop(err)
		}
		return made, err
	}
}

// migrate carries out what nothing of a plan can be applied before, and returns the plan that follows.
func (r Reconciler) migrate(ctx context.Context, want render.Desired, p plan.Plan) (plan.Plan, error) {
	first := p.Migration()
	if !first.Writes() {
		return p, nil
	}
	done, err := r.Applier.Apply(ctx, first)
	if err != nil && !errors.Is(err, plan.ErrMoved) {
		return p, err
	}
	next, err := r.Plan(ctx, want, r.Observer)
	return next.Migrated(first, done), err
}

// grace returns Grace, or its default.
func (r Reconciler) grace() time.Duration { return cmp.Or(r.Grace, 10*time.Second) }

// settle waits until nothing is pending any more that Crossplane is to make of what was
// applied, and carries out what waited for it. What is late when the time is over is broken:
// somebody has to look. p keeps its steps, and gets the checks of the last look.
func (r Reconciler) settle(ctx context.Context, pass Pass, p *plan.Plan, done []plan.Outcome) ([]plan.Outcome, error) {
	if !p.Coming(nil) && (len(p.Checks) == 0 || !p.Writes() && !p.Are(plan.Pending)) {
		return done, nil
	}
	timeout := cmp.Or(r.Timeout, 5*time.Minute)
	if !p.Writes() && !pass.waits(*p) {
		pass.end(p, timeout, false)
		return done, nil
	}
	late := time.After(timeout)
	moved, waiting := time.Now(), p.Waiting() // when Crossplane was last seen to have done something
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		want, err := pass.Render(ctx) // packages may have brought definitions since
		if err != nil {
			return done, err
		}
		now, err := r.Plan(ctx, want, r.Observer)
		if err != nil {
			return done, err
		}
		if !reflect.DeepEqual(p.Checks, now.Checks) || waiting != now.Waiting() {
			moved, waiting = time.Now(), now.Waiting()
		}
		patient := time.Since(moved) < r.grace()
		*p = p.Refreshed(now)
		next := p.Resumed(now, patient)
		next.Steps = slices.DeleteFunc(next.Steps, func(s plan.Step) bool { return s.TakesBack && failed(done, s.ID) })
		more, err := r.resume(ctx, next)
		done = append(done, more...)
		if err != nil {
			*p = p.Replaced(next.Carried(more)) // that was written, whatever went wrong after it
		}
		switch {
		case errors.Is(err, plan.ErrMoved): // look again
		case err != nil:
			return done, err
		default:
			*p = p.Replaced(next).Stranded(done)
			if next.Writes() {
				pause = 125 * time.Millisecond // what was written now may bring the next
			}
		}
		settled := err == nil && !next.Writes() && !pass.waits(*p)
		if settled && !(p.Are(plan.Broken) && patient) { // Crossplane tries again what went wrong
			pass.end(p, timeout, false)
			return done, nil
		}
		select {
		case <-ctx.Done():
			return done, context.Cause(ctx)
		case <-late:
			pass.end(p, timeout, true)
			return done, nil
		case <-time.After(pause):
		}
	}
}

// waitOut waits for what was applied and was not ready when the rest went on.
func (r Reconciler) waitOut(ctx context.Context, pass Pass, done []plan.Outcome) ([]plan.Outcome, error) {
	unready := map[manifest.ID]bool{}
	for _, o := range done {
		unready[o.ID] = o.Unknown && o.Err == nil
	}
	if !slices.ContainsFunc(done, func(o plan.Outcome) bool { return unready[o.ID] }) {
		return done, nil
	}
	want, err := pass.Render(ctx)
	if err != nil {
		return done, err
	}
	for attempt := 1; ; attempt++ {
		p, err := r.Plan(ctx, want, r.Observer)
		if err != nil {
			return done, err
		}
		more, err := r.Applier.Apply(ctx, p.Only(unready))
		done = append(done, more...)
		if !errors.Is(err, plan.ErrMoved) || attempt == attempts {
			return done, err
		}
	}
}

// failed says whether something was tried in this pass, and in vain: the next one tries again.
func failed(done []plan.Outcome, id manifest.ID) bool {
	return slices.ContainsFunc(done, func(o plan.Outcome) bool { return o.ID == id && o.Err != nil })
}

// resume carries out what of a plan has not to wait any more.
func (r Reconciler) resume(ctx context.Context, p plan.Plan) ([]plan.Outcome, error) {
	if !p.Writes() {
		return nil, nil
	}
	return r.Applier.Apply(ctx, p)
}

// waits says whether something is pending for which there is still time.
func (pass Pass) waits(p plan.Plan) bool {
	return p.Coming(pass.Late) ||
		slices.ContainsFunc(p.Checks, func(c plan.Check) bool { return c.State == plan.Pending && !pass.Late[c.ID] })
}

// end ends the wait. Where the time is over, what is still pending is broken from now on, until
// it is pending no more.
func (pass Pass) end(p *plan.Plan, timeout time.Duration, over bool) {
	if pass.Late == nil {
		pass.Late = map[manifest.ID]bool{}
	}
	pending := map[manifest.ID]bool{}
	for _, c := range p.Checks {
		pending[c.ID] = c.State == plan.Pending
	}
	for _, s := range p.Steps {
		pending[s.ID] = pending[s.ID] || s.Waiting()
	}
	for id := range pending {
		pass.Late[id] = pending[id] && (over || pass.Late[id])
	}
	*p = p.Overdue(timeout.String(), pass.Late)
}
