package reconcile

import (
	"context"
	"slices"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// answer answers the questions of a plan. The forge answers for its approvals, and the place everything else. For questions about the
// last applied commit, the place gets the objects that this commit declares.
func (r Reconciler) answer(ctx context.Context, seen facts.Observed, place Observer, open []question.Any) (question.Answers, error) {
	var before []manifest.ID
	var others []question.Any
	answers := question.Answers{}
	for _, q := range open {
		switch q := q.(type) {
		case question.Approvals:
			answers[q] = r.onForge(ctx, q)
		case question.AppliedBefore:
			before = append(before, q.Of)
			answers[q] = question.Unknown{Why: reason.CodedError{Reason: reason.NotInSource.With()}}
		default:
			others = append(others, q)
		}
	}
	var declared map[manifest.ID]plan.FullDefinition
	if len(before) > 0 {
		declared = r.declaredBefore(ctx, seen, before)
	}
	for id, content := range declared {
		others = append(others, question.Applied{Of: id, Content: content})
	}
	if len(others) == 0 {
		return answers, nil
	}
	found, err := place.Answer(ctx, others)
	if err != nil {
		return nil, err
	}
	for id, content := range declared {
		if a, has := found[question.Applied{Of: id, Content: content}]; has {
			answers[question.AppliedBefore{Of: id}] = a
		}
	}
	return answers.And(found), nil
}

// onForge reads the approvals on the pull requests of a commit. If that fails, none of them count.
func (r Reconciler) onForge(ctx context.Context, q question.Approvals) any {
	defer engine.PauseAfter(ctx, late)() // a forge that does not answer holds no worker
	given, err := r.OnForge(ctx, q.Revision)
	if err != nil {
		return question.Unknown{Why: err}
	}
	return given
}

// mostCommits is the maximum number of commits that are rendered again for one plan.
const mostCommits = 3

// declaredBefore returns objects as the last applied commit declares them. It renders this commit again. It leaves out objects that
// the source does not show any more, for example because the clone is shallow, and objects that were last applied with other content.
func (r Reconciler) declaredBefore(ctx context.Context, seen facts.Observed, of []manifest.ID) map[manifest.ID]plan.FullDefinition {
	before := map[manifest.ID]plan.FullDefinition{}
	commits := seen.Inventory.Commits()
	for _, commit := range commits[:min(len(commits), mostCommits)] {
		if r.Source == nil || len(before) == len(of) || commit == seen.Want.Revision {
			continue
		}
		in, err := r.fetch(ctx, commit)
		if err != nil {
			continue
		}
		want, err := r.render(ctx, in)
		if err != nil {
			continue
		}
		for _, o := range want.Objects {
			if before[o.ID] != nil || !slices.Contains(of, o.ID) || !seen.AsBefore(o) {
				continue
			}
			before[o.ID] = plan.Lazy(func() (*unstructured.Unstructured, error) { return demand.Sent(r.Sync, o) })
		}
	}
	return before
}
