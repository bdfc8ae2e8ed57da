// Package reconcile makes one pass over one target: it fetches a commit, renders what
// it wants, observes what is there, plans, applies and reports.
//
//	ref ─Fetch─► Input ─Render─► Desired ─┬─────────────► Compute ─► Plan ─Apply─► Outcomes ─New─► Report
//	                                      └─Observe─► Observed ─┘
package reconcile

import (
	"context"
	"errors"
	"fmt"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
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

// A Reconciler makes passes over one target.
type Reconciler struct {
	Source   Source
	Observer Observer
	Applier  Applier
	Options  render.Options
	Guarding plan.Guarding
	Sync     plan.Sync
}

// Render fetches a commit and renders what it wants. Of a commit that cannot be
// rendered the revision is known all the same.
func (r Reconciler) Render(ctx context.Context, ref string) (render.Desired, error) {
	in, err := r.Source.Fetch(ctx, ref)
	if err != nil {
		return render.Desired{}, err
	}
	want, err := render.Render(in, r.Options)
	want.Revision = in.Revision
	return want, err
}

// Plan says what a pass would do to a place.
func (r Reconciler) Plan(ctx context.Context, want render.Desired, place Observer) (plan.Plan, error) {
	seen, err := place.Observe(ctx, want)
	if err != nil {
		return plan.Plan{}, err
	}
	guards := r.Guarding.Guards()
	p, err := plan.Compute(want, seen, guards...)
	if err != nil || len(p.Open()) == 0 {
		return p, err
	}
	seen.Answers, err = place.Answer(ctx, p.Open())
	if err != nil {
		return plan.Plan{}, err
	}
	return plan.Compute(want, seen, guards...)
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
	p, err := r.Plan(ctx, after, plan.Baseline{Base: before, Sync: r.Sync})
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
	want, err := r.Render(ctx, ref)
	if err != nil {
		return report.Failed(r.Sync, want.Revision, err), err
	}
	for attempt := 1; ; attempt++ {
		p, err := r.Plan(ctx, want, r.Observer)
		if err != nil {
			return report.Failed(r.Sync, want.Revision, err), err
		}
		done, err := r.Applier.Apply(ctx, p)
		switch {
		case errors.Is(err, plan.ErrMoved) && attempt < attempts:
			continue
		case err != nil:
			failed := report.New(p, done, true)
			failed.Stop(err)
			return failed, err
		}
		return report.New(p, done, true), nil
	}
}
