package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// Destroy ends a sync: what it owns is deleted, or left as nobody's, as far as guards allow.
// It goes tier by tier, in reverse: what a tier needs to go away is in those after it, so each
// is gone before the next begins, and what is held holds those after it too. Once nothing is
// owned the inventory goes. Whoever interrupts it, or acts on what held it, begins anew.
func (r Reconciler) Destroy(ctx context.Context, how plan.Ending) (report.Report, error) {
	began := time.Now()
	d, err := r.destruction(ctx, how)
	if err != nil {
		return report.Failed(r.Sync, "", err), err
	}
	p, err := d.plan(ctx, true)
	if err != nil {
		return report.Failed(r.Sync, "", err), err
	}
	d.first = p
	p, err = d.carryOut(ctx, p)
	said := report.New(d.account(p), slices.Collect(maps.Values(d.done)), true)
	if err != nil {
		said.Stop(err)
	}
	r.record(ctx, began, said, how) // where an inventory is left
	return said, err
}

// Destruction says what Destroy would do.
func (r Reconciler) Destruction(ctx context.Context, how plan.Ending) (report.Report, error) {
	d, err := r.destruction(ctx, how)
	if err != nil {
		return report.Report{}, err
	}
	p, err := d.plan(ctx, true)
	if err != nil {
		return report.Report{}, err
	}
	return report.New(p, nil, false), nil
}

// A destruction is a sync that ends.
type destruction struct {
	Reconciler
	want  render.Desired // nothing
	how   plan.Ending
	first plan.Plan
	acted map[manifest.ID]plan.Step // as they were carried out
	done  map[manifest.ID]plan.Outcome
}

func (r Reconciler) destruction(ctx context.Context, how plan.Ending) (*destruction, error) {
	if r.Applier == nil {
		return nil, errors.New("this sync only looks: it owns nothing that could be destroyed")
	}
	as, err := r.options(ctx)
	if err != nil {
		return nil, err
	}
	d := &destruction{Reconciler: r, how: how, acted: map[manifest.ID]plan.Step{}, done: map[manifest.ID]plan.Outcome{}}
	if d.want.Owner = as.Owner; as.Owner == render.OwnerAuto {
		d.want.Owner = render.OwnerHeadgate // nobody else does, and nothing is recorded
	}
	return d, nil
}

// plan is what is left to do. Where not all of it is to be known, only its first tier is
// counted: counts cost as much as there is.
func (d *destruction) plan(ctx context.Context, all bool) (plan.Plan, error) {
	seen, err := d.Observer.Observe(ctx, d.want)
	if err != nil {
		return plan.Plan{}, err
	}
	seen.Ends = d.how
	if d.Approvals != nil {
		seen.Approvals = d.Approvals()
	}
	guards := d.Guarding.Guards()
	p, err := plan.Compute(d.want, seen, guards...)
	for round := 0; err == nil && round < rounds; round++ { // what passes one guard may have another ask
		open := slices.Clone(p.Open())
		if first := p.Foremost(); !all {
			open = slices.DeleteFunc(open, func(q plan.Question) bool { return !first.Concerns(q) })
		}
		if len(open) == 0 {
			break
		}
		answers, failed := d.Observer.Answer(ctx, open)
		if failed != nil {
			return plan.Plan{}, failed
		}
		seen.Answers = merged(seen.Answers, answers)
		p, err = plan.Compute(d.want, seen, guards...)
	}
	return p, err
}

// carryOut goes tier by tier, and returns the plan of what is left.
func (d *destruction) carryOut(ctx context.Context, p plan.Plan) (plan.Plan, error) {
	timeout := cmp.Or(d.Timeout, 5*time.Minute)
	var moved time.Time // when something was last seen to go
	failures := 0
	for attempt := 1; ; {
		tier := p.Foremost()
		done, err := d.Applier.Apply(ctx, tier)
		d.note(tier, done)
		switch {
		case errors.Is(err, plan.ErrMoved) && attempt < attempts:
			attempt++
		case err != nil:
			return p, err
		case len(p.Steps) == 0:
			return p, nil
		case slices.ContainsFunc(tier.Steps, func(s plan.Step) bool { return s.Writes() || s.Deleting }):
			attempt, failures = 1, failures+1
			late, err := d.gone(ctx, tier, timeout)
			if err != nil {
				return p, err
			}
			if !d.failed(tier) {
				moved, failures = time.Now(), 0
			}
			if late || failures == attempts {
				return d.whatIsLeft(ctx, p)
			}
		case slices.ContainsFunc(tier.Steps, func(s plan.Step) bool { return s.Guard == "rebuilt" }):
			return p, nil
		case !slices.ContainsFunc(tier.Steps, plan.Step.MayClear), time.Since(moved) > d.grace():
			return d.whatIsLeft(ctx, p)
		default:
			if err := pause(ctx, time.Second); err != nil {
				return p, err
			}
		}
		next, err := d.plan(ctx, false)
		if err != nil {
			return p, err
		}
		p = next
	}
}

// whatIsLeft returns the plan of what is left, with everything counted. If it cannot be made, it is the
// last one that could: what is not known to be gone must not be reported as deleted.
func (d *destruction) whatIsLeft(ctx context.Context, last plan.Plan) (plan.Plan, error) {
	now, err := d.plan(ctx, true)
	if err != nil {
		return last, err
	}
	return now, nil
}

func (d *destruction) note(tier plan.Plan, done []plan.Outcome) {
	for _, s := range tier.Steps {
		if s.Writes() || s.Deleting {
			d.acted[s.ID] = s
		}
	}
	for _, o := range done {
		d.done[o.ID] = o
	}
}

func (d *destruction) failed(tier plan.Plan) bool {
	return slices.ContainsFunc(tier.Steps, func(s plan.Step) bool { return d.done[s.ID].Err != nil })
}

// gone waits until what was deleted of a tier is not there any more, and says whether time
// was over before that.
func (d *destruction) gone(ctx context.Context, tier plan.Plan, timeout time.Duration) (late bool, err error) {
	over := time.Now().Add(timeout)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		seen, err := d.Observer.Observe(ctx, d.want)
		if err != nil {
			return false, err
		}
		left := map[manifest.ID]error{}
		for _, s := range tier.Steps {
			live, exists := seen.Objects[s.ID]
			if exists && s.Action == plan.Prune && (s.Writes() || s.Deleting) && live.GetUID() == s.UID && d.done[s.ID].Err == nil {
				left[s.ID] = fmt.Errorf("not gone after %s: %s", timeout, plan.WhyDeleting(live))
			}
		}
		if len(left) == 0 {
			return false, nil
		}
		if time.Now().After(over) {
			for id, err := range left {
				d.done[id] = plan.Outcome{ID: id, Action: plan.Prune, Err: err}
			}
			return true, nil
		}
		if err := pause(ctx, wait); err != nil {
			return false, err
		}
	}
}

// account is the plan as it was carried out: what was done, and of what is left what is known
// now.
func (d *destruction) account(left plan.Plan) plan.Plan {
	now := make(map[manifest.ID]plan.Step, len(left.Steps))
	for _, s := range left.Steps {
		now[s.ID] = s
	}
	all := left
	all.Notes, all.Steps = d.first.Notes, nil
	for _, s := range d.first.Steps {
		acted, did := d.acted[s.ID]
		newer, stays := now[s.ID]
		switch {
		case did && (!stays || d.done[s.ID].Err != nil):
			s = acted
		case stays:
			s = newer
		case s.Action == plan.Hold: // it went with something else
			s.Action, s.Would, s.Guard, s.Reason = plan.Prune, "", "", ""
		}
		if _, known := d.done[s.ID]; !known && !stays {
			d.done[s.ID] = plan.Outcome{ID: s.ID, Action: s.Action}
		}
		s.Deleting = false
		all.Steps = append(all.Steps, s)
	}
	return all
}

// pause waits for a while. The error is that ctx ended first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// ReleaseRebuilt takes the marks of the sync from what a rebuilt inventory holds and no pass has applied
// since, and forgets it. Nothing is deleted. With dry, it only shows what it would release.
func (r Reconciler) ReleaseRebuilt(ctx context.Context, dry bool) (report.Report, error) {
	if r.Applier == nil {
		return report.Report{}, errors.New("this sync only looks: it owns nothing that could be released")
	}
	var p plan.Plan
	var done []plan.Outcome
	for attempt := 1; ; attempt++ {
		seen, err := r.Observer.Observe(ctx, render.Desired{})
		var next plan.Plan
		if err == nil {
			next, err = plan.ReleaseRebuilt(seen)
		}
		if err == nil && dry {
			return report.New(next, nil, false), nil
		}
		var more []plan.Outcome
		if err == nil {
			more, err = r.Applier.Apply(ctx, next)
			p, done = next.Continued(p, done), append(done, more...)
		}
		if errors.Is(err, plan.ErrMoved) && attempt < attempts {
			continue
		}
		p.Sync = r.Sync
		said := report.New(p, done, true)
		if err != nil {
			said.Stop(err)
		}
		return said, err
	}
}
