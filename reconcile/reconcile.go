// Package reconcile makes one pass over one target: it fetches a commit, renders what it wants, observes what exists, plans,
// applies and reports.
//
//	ref ─Fetch─► Input ─Render─► Desired ─┬─────────────► Compute ─► Plan ─Apply─► Outcomes ─New─► Report
//	                                      └─Observe─► Observed ─┘
package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/trace"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Source fetches a commit. ref is a branch, a tag or a commit; "" is the default.
type Source interface {
	Fetch(ctx context.Context, ref string) (render.Input, error)
}

// An Observer reads a place: a cluster, or a commit in place of one. Observe reads the live objects that are wanted or owned;
// Answer counts objects for guards.
type Observer interface {
	Observe(ctx context.Context, want render.Desired) (facts.Observed, error)
	Answer(ctx context.Context, questions []question.Any) (question.Answers, error)
}

// An Applier carries out a plan. It may refuse a step, and adds nothing. If the state behind the plan has changed, it
// writes nothing and returns plan.ErrMoved.
type Applier interface {
	Apply(ctx context.Context, p plan.Plan) ([]plan.Outcome, error)
}

// A ClusterReader reads from a cluster what the render options of a commit depend on.
type ClusterReader interface {
	// Owner returns the owner of CRDs in the cluster; "" if the cluster does not show it.
	Owner(ctx context.Context) (render.Owner, error)
	// Definitions returns the definitions in the cluster.
	Definitions(ctx context.Context) ([]*catalogue.Definition, error)
	// Policies returns the policies of the cluster by name, or nil without Crossplane.
	Policies(ctx context.Context) (map[string]crossplane.LivePolicy, error)
}

// A Recorder records the results of passes if they are new.
type Recorder interface {
	Record(ctx context.Context, p inventory.Past) error
}

// A Reconciler makes passes over one target.
type Reconciler struct {
	Source   Source
	Observer Observer
	Applier  Applier       // nil if passes only observe
	Cluster  ClusterReader // nil if passes have no cluster
	Recorder Recorder      // nil if passes are not recorded
	Waiter   Waiter        // nil if it is not known what passes wait for
	Notice   func(string)  // receives what a pass is waiting for, from time to time; may be nil
	Peers    *Peers        // the other syncs of the process; nil if there are none
	Heirs    []facts.Peer  // the syncs that may take over objects when this one ends
	Options  render.Options
	Guarding guard.Guarding
	Terms    facts.Terms   // the same as the Observer's
	Fights   []facts.Fight // from earlier passes
	Sync     inventory.Sync

	// Approvals returns the digests that people approved, by the places that could be read. It is called before every plan. If it
	// is nil, no place can be read.
	Approvals func() approval.Given
	// OnForge returns the approvals on the pull requests of a commit. It is called while an approvable step is held, or if the pass
	// before held one. If it is nil, the forge is not asked.
	OnForge func(ctx context.Context, revision string) (approval.Given, error)
	// Heads returns the Source for the head of a pull request: Headgate asks for no more on its behalf than what its target names. It
	// is called before the head is read. If it is nil, the head is fetched like its target.
	Heads func(ctx context.Context, target packages.Named) (Source, error)
	// Applied returns the last applied commit, according to the inventory; "" if there is none. If it is nil, that is not known.
	Applied func(ctx context.Context) (string, error)
	// AppliedBefore is the last applied commit that the loop knew when it read the ref; nil if it knew none.
	AppliedBefore *string
	// Owned returns the objects in the inventory of another sync. It is only called with Peers.
	Owned func(ctx context.Context, of inventory.Sync) ([]manifest.ID, error)
	// CA returns the CA of conversion webhooks. It is called before every pass, because the CA may change. If it is nil, the CA is
	// in Options.
	CA              func(ctx context.Context) ([]byte, error)
	OnlyDeactivates bool          // passes only deactivate definitions
	Live            bool          // definitions in the cluster count in addition to those of the commit
	Timeout         time.Duration // how long effects may take; default 5 minutes
	Least           time.Duration // the minimum time limit of a pass, to which its objects and waits add; default 10 minutes
	// Grace is how long something may look broken or missing after Crossplane's last change; default 10 seconds.
	Grace  time.Duration
	NoWait bool // do not wait for effects
	// Suspended is why passes write nothing, and only report what they would do; "" if they write.
	Suspended string

	computes func() // is called before each Compute; nil except in tests
}

// fetch fetches a commit. A repository that does not answer holds no worker.
func (r Reconciler) fetch(ctx context.Context, ref string) (render.Input, error) {
	defer engine.PauseAfter(ctx, late)()
	ctx, span := trace.Begin(ctx, "fetch")
	in, err := r.Source.Fetch(ctx, ref)
	span.Text("revision", in.Revision)
	span.End(err)
	return in, err
}

// Render fetches and renders a commit. It returns the revision even if the commit cannot be rendered.
func (r Reconciler) Render(ctx context.Context, ref string) (render.Desired, error) {
	in, err := r.fetch(ctx, ref)
	if err != nil {
		err = unread(err)
		return render.Desired{Revision: refused(err)}, err
	}
	return r.render(ctx, in)
}

func (r Reconciler) render(ctx context.Context, in render.Input) (render.Desired, error) {
	how, err := r.options(ctx)
	if err != nil {
		return render.Desired{Revision: in.Revision}, err
	}
	return renderAs(ctx, in, how)
}

// renderAs renders a commit. It returns the revision even if the commit cannot be rendered.
func renderAs(ctx context.Context, in render.Input, how render.Options) (render.Desired, error) {
	_, span := trace.Begin(ctx, "render")
	want, err := render.Render(in, how)
	want.Revision = in.Revision
	span.Count("objects", len(want.Objects))
	span.End(err)
	return want, err
}

// options returns the render options for this target. It asks the cluster for its CRD owner.
func (r Reconciler) options(ctx context.Context) (render.Options, error) {
	how := r.Options
	var err error
	if how.Owner == render.OwnerAuto && r.Cluster != nil {
		owner, err := r.Cluster.Owner(ctx)
		if err != nil {
			return how, err
		}
		how.Owner = cmp.Or(owner, render.OwnerAuto) // auto: the commit decides
	}
	if r.CA != nil {
		if how.Conversion.CABundle, err = r.CA(ctx); err != nil {
			return how, err
		}
	}
	if r.Live && r.Cluster != nil {
		if how.Live, err = r.Cluster.Definitions(ctx); err != nil {
			return how, err
		}
	}
	if looks := how.Compares || how.Explains; looks && r.Observer != nil && r.Cluster != nil {
		how.Policies, err = r.Cluster.Policies(ctx)
	}
	return how, err
}

// Plan returns the plan of a pass over a place.
func (r Reconciler) Plan(ctx context.Context, want render.Desired, place Observer) (plan.Plan, error) {
	p, err := r.plan(ctx, want, place, plan.Plan.Open)
	if r.OnlyDeactivates {
		p = p.OnlyDeactivating()
	}
	return p, err
}

// plan observes a place and computes its plan. asks selects the open questions to answer.
func (r Reconciler) plan(ctx context.Context, want render.Desired, place Observer, asks func(plan.Plan) []question.Any) (plan.Plan, error) {
	observing, span := trace.Begin(ctx, "observe")
	seen, err := place.Observe(observing, want)
	span.Count("objects", len(seen.Objects))
	span.End(err)
	if err != nil {
		return plan.Plan{}, err
	}
	seen.Now, seen.AppliedBefore = metav1.Now(), r.AppliedBefore
	seen.Fights = make([]facts.Fight, len(r.Fights))
	for i, f := range r.Fights { // reports use the cluster's spelling of IDs
		f.ID = seen.AsWritten(f.ID)
		seen.Fights[i] = f
	}
	if r.Approvals != nil {
		seen.Approvals = r.Approvals()
	}
	if r.OnForge == nil {
		seen.Answers = seen.Answers.And(question.Answers{question.Approvals{Revision: seen.Want.Revision}: approval.Given(nil)})
	}
	together := r.Peers != nil && seen.Stance == plan.Applying
	if !together {
		return r.answered(ctx, &seen, place, asks)
	}
	r.declare(want, seen)
	p, err := r.computeBeside(ctx, &seen, place, asks)
	if err == nil && r.Peers.ask(ctx, r.Sync, r.waitFor(want.Revision, seen), draft.Awaits(p, seen)) {
		p, err = r.computeBeside(ctx, &seen, place, asks)
	}
	if err == nil {
		r.Peers.handOver(r.Sync, want.Revision, draft.HandsTo(p, seen))
		r.Peers.planned(r.Sync, givenUp(p), len(draft.Awaits(p, seen)) > 0)
	}
	return p, err
}

// computeBeside computes the plan of a place with what the other syncs of the branch declare at the moment.
func (r Reconciler) computeBeside(ctx context.Context, seen *facts.Observed, place Observer, asks func(plan.Plan) []question.Any) (plan.Plan, error) {
	seen.Peers = r.Peers.others(r.Sync, seen.Want.Revision)
	return r.answered(ctx, seen, place, asks)
}

// waitFor returns the wait for other syncs to render a commit.
func (r Reconciler) waitFor(revision string, seen facts.Observed) wait {
	return wait{revision, cmp.Or(r.Timeout, 5*time.Minute), func(ctx context.Context, of inventory.Sync) (map[manifest.ID]bool, error) {
		ids, err := r.Owned(ctx, of)
		if err != nil {
			return nil, err
		}
		home, owned := seen.Homes(), map[manifest.ID]bool{}
		for _, id := range ids {
			owned[home(id)] = true
		}
		return owned, nil
	}}
}

// answered computes a plan, and computes it again with the answers to its questions until there are no more. An approved step may
// lead to questions of the next guard. A plan with open questions is never returned: it would hold or leave out what nobody decided.
func (r Reconciler) answered(ctx context.Context, seen *facts.Observed, place Observer, asks func(plan.Plan) []question.Any) (plan.Plan, error) {
	guards := r.Guarding.Guards()
	for round := 0; ; round++ {
		if r.computes != nil {
			r.computes()
		}
		_, span := trace.Begin(ctx, "plan")
		p, err := draft.Compute(*seen, guards...)
		span.Count("steps", len(p.Steps))
		span.End(err)
		if err != nil {
			return p, err
		}
		open := asks(p)
		switch {
		case len(open) == 0:
			return p, nil
		case round == mostRounds:
			return plan.Plan{}, fmt.Errorf("%w after %d rounds: %s; please report this", errOpen, mostRounds, question.Text(open))
		}
		asking, span := trace.Begin(ctx, "answer")
		answers, err := r.answer(asking, *seen, place, open)
		span.Count("questions", len(open))
		span.End(err)
		if err != nil {
			return plan.Plan{}, err
		}
		seen.Answers = seen.Answers.And(answers)
	}
}

// mostRounds is the maximum number of rounds of questions. A plan needs fewer: each answer leads to the questions of the next guard at
// most.
const mostRounds = 10

// errOpen is the error of a plan whose questions are not answered in the end.
var errOpen = errors.New("the plan has open questions")

// Declare tells the other syncs of the process what the newest commit declares. It makes no pass.
func (r Reconciler) Declare(ctx context.Context, ref string) error {
	in, err := r.fetch(ctx, ref)
	r.Peers.fetched(r.Sync, err)
	if err != nil {
		return err
	}
	want, err := r.render(ctx, in)
	if err != nil {
		r.Peers.failed(r.Sync, in.Revision, err)
		return err
	}
	seen, err := r.Observer.Observe(ctx, want)
	if err != nil {
		r.Peers.failed(r.Sync, in.Revision, err)
		return err
	}
	r.declare(want, seen)
	return nil
}

// declare tells the other syncs what a commit declares.
func (r Reconciler) declare(want render.Desired, seen facts.Observed) {
	may := r.Guarding.Allows(seen)
	r.Peers.declared(r.Sync, want, seen.Declares(may), seen.Takes(may))
}

// Diff returns what Run would do to the cluster.
func (r Reconciler) Diff(ctx context.Context, ref string) (report.Report, error) {
	want, err := r.Render(ctx, ref)
	if err != nil {
		return report.Report{}, err
	}
	p, err := r.Plan(ctx, want, r.Observer)
	if err == nil {
		err = refuseNothing(want, p)
	}
	if err != nil {
		return report.Report{}, err
	}
	return report.New(p, nil, false), nil
}

// Compare returns the changes from one commit to another, without a cluster.
func (r Reconciler) Compare(ctx context.Context, base, head string) (report.Report, error) {
	r = r.comparing()
	var broken catalogue.Errors
	before, err := r.Render(ctx, base)
	if err != nil && !errors.As(err, &broken) {
		return report.Report{}, fmt.Errorf("base: %w", err)
	}
	after, err := r.head(ctx, before, head)
	switch {
	case err != nil:
		return report.Report{}, err
	case broken != nil:
		return r.alone(ctx, head, after, base, broken)
	}
	p, err := r.Plan(ctx, after, baseline.Baseline{Base: before, Sync: r.Sync, Terms: r.Terms, Approvals: before.Approvals})
	if err != nil {
		return report.Report{}, err
	}
	return report.Compared(p, report.Comparison{Before: before, Approvals: before.Approvals, At: metav1.Now()}), nil
}

// Run makes one pass. Afterwards, the cluster is as the commit wants, as far as guards and the API server allow. The report is
// complete even if Run returns an error.
func (r Reconciler) Run(ctx context.Context, ref string) (report.Report, error) {
	began := time.Now()
	in, err := r.fetch(ctx, ref)
	if err != nil {
		err = unread(err)
		result := report.Failed(r.Sync, refused(err), err)
		r.record(ctx, began, result, "", "")
		return result, err
	}
	result, _, err := r.Carry(ctx, Task{Render: func(ctx context.Context) (render.Desired, error) { return r.render(ctx, in) }})
	r.record(ctx, began, result, in.Source.Commit, "")
	return result, err
}

// recording is the time limit for recording the result of a pass, even after the pass was stopped.
const recording = 5 * time.Second

// record records the result of a pass in the cluster. A failure is not an error of the pass, because the result is also published
// elsewhere. commit is the checked-out commit of a directory, which has no revision. ends is how objects leave the sync; "" for a pass.
func (r Reconciler) record(ctx context.Context, began time.Time, result report.Report, commit, ends string) {
	if r.Recorder == nil || r.Suspended != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recording)
	defer cancel()
	now := time.Now()
	past := result.Past(metav1.NewTime(now.UTC().Truncate(time.Second)), metav1.Duration{Duration: now.Sub(began).Round(time.Millisecond)})
	past.Ends = ends
	if past.Revision == "" {
		past.Commit = commit
	}
	if r.OnlyDeactivates || ends != "" {
		past.Holding = nil // the pass has not checked everything
	}
	ctx, span := trace.Begin(ctx, "record")
	span.End(r.Recorder.Record(ctx, past))
}

// grace returns Grace, or its default.
func (r Reconciler) grace() time.Duration { return cmp.Or(r.Grace, 10*time.Second) }
