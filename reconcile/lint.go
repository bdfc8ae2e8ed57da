package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/lint"
	"headgate.dev/headgate/render/manifest"
)

// RuleNothing is the rule for a commit that declares nothing.
const RuleNothing = "nothing-declared"

// RuleForbidden is the rule for an object that the Sync does not allow.
const RuleForbidden = "not-allowed"

// Linted is what lint finds about a commit.
type Linted struct {
	Findings   []manifest.Finding // sorted
	NotChecked check.Omissions    // objects that could not be checked without a cluster
}

// Lint returns the errors of a commit and the findings about parts that will not work. It also reads inactive definitions. The
// errors include everything that a pass over an empty cluster would refuse.
func (r Reconciler) Lint(ctx context.Context, ref string) (Linted, error) {
	r.Options.Lints = true
	want, err := r.Render(ctx, ref)
	checked := lint.Checked(want, lint.Everything)
	found := slices.Concat(want.Findings, lint.Default(want), lint.Coverage(want), lint.References(want), lint.Misread(want), lint.Refused(ctx, want), checked.Findings)
	problems, ofCommit := errors.AsType[catalogue.Errors](err)
	switch {
	case ofCommit:
		found = withErrors(found, problems.Findings())
	case err != nil:
		return Linted{}, err
	default:
		found = slices.Concat(want.Problems().Findings(), found, r.unplanned(ctx, want))
	}
	if err := want.Nothing(); !ofCommit && err != nil && len(found) == 0 {
		found = append(found, manifest.Finding{
			Rule: RuleNothing, Severity: manifest.Error, Origin: manifest.Origin{Path: cmp.Or(want.Source.Path, ".")}, About: manifest.About{}, Message: err.Error(),
		})
	}
	slices.SortFunc(found, manifest.Finding.Compare)
	return Linted{slices.Compact(found), checked.Omitted}, nil
}

// withErrors returns errors and the findings about other documents.
func withErrors(found, errors []manifest.Finding) []manifest.Finding {
	at := map[manifest.Origin]bool{}
	for _, f := range errors {
		at[f.Origin] = true
	}
	return append(errors, slices.DeleteFunc(found, func(f manifest.Finding) bool { return at[f.Origin] })...)
}

// unplanned returns findings about a commit that cannot be planned for an empty cluster.
func (r Reconciler) unplanned(ctx context.Context, want render.Desired) []manifest.Finding {
	seen, err := baseline.Baseline{Sync: r.Sync, Terms: r.Terms, Kinds: baseline.KindsOf(want)}.Observe(ctx, want)
	var p plan.Plan
	if err == nil {
		p, err = draft.Compute(seen, r.Guarding.OfCommit()...)
	}
	found := catalogue.ErrorsOf(manifest.Origin{}, err).Findings()
	for _, s := range p.Steps {
		if s.Action == plan.Hold {
			found = append(found, manifest.Finding{Rule: RuleForbidden, Severity: manifest.Error, Origin: s.Origin, About: manifest.About{Object: s.ID, Subject: string(s.Reason.Code)}, Message: s.ID.String() + ": " + words.Of(s.Reason)})
		}
	}
	return found
}
