package report

import (
	"cmp"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Changed reports whether the pass changed anything in the cluster.
func (r Report) Changed() bool { return r.Past(metav1.Time{}, metav1.Duration{}).Changed() }

// Done describes what the pass changed in the cluster, and who approved it; "" if it changed nothing.
func (r Report) Done() string {
	past := r.Past(metav1.Time{}, metav1.Duration{})
	if !past.Changed() {
		return ""
	}
	parts := []string{past.Did()}
	for _, a := range r.Used() {
		parts = append(parts, a.short())
	}
	return joined(slices.Compact(parts)...)
}

// Past returns the report in the form of the inventory. ended and took describe the pass.
func (r Report) Past(ended metav1.Time, took metav1.Duration) inventory.Past {
	p := inventory.Past{
		When: ended, Took: took, Revision: r.Revision,
		Activation: string(r.Verdict.Activation.State), Drift: string(r.Verdict.Drift.State), ExitCode: r.Verdict.ExitCode,
		Held: r.Summary.Held, Failed: r.Summary.Failed,
	}
	if r.Applied {
		p.Created, p.Updated, p.Pruned, p.Released = r.Summary.Created, r.Summary.Updated, r.Summary.Pruned, r.Summary.Released
		p.Deleting = r.Summary.Begun
	}
	if r.Applied && r.Error == "" {
		holds := r.Holds(ended)
		p.Holding, p.Undone = &holds, inventory.Undone{}
		for _, s := range r.Steps {
			if why := cmp.Or(s.Error, s.NotReady); why != "" {
				p.Failures = append(p.Failures, inventory.Failure{Object: s.ID, Why: why})
			}
		}
		for id, since := range r.Undone {
			if p.Undone[id] = since; since.IsZero() {
				p.Undone[id] = ended
			}
		}
	}
	for _, s := range []Status{r.Verdict.Drift, r.Verdict.Activation} {
		if s.State != Success {
			p.Said = s.Description
		}
	}
	return p
}
