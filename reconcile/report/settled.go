package report

import "slices"

// Repeated returns the report that another pass over the same would have. It is known if nothing is open after this pass: it carried out
// every create and update, and nothing was removed, held or late, nothing drifted, and no other tool still has to act. A step with a reason,
// such as an adoption, may have another phase in the next pass.
func (r Report) Repeated() (next Report, known bool) {
	ends := func(s Step) bool { return s.Reason == "" && !s.Deactivates }
	r.Steps = slices.DeleteFunc(slices.Clone(r.Steps), func(s Step) bool { return s.Action.Writes() && s.carriedOut() && ends(s) })
	r.Summary.Unchanged += r.Summary.Created + r.Summary.Updated
	r.Summary.Created, r.Summary.Updated, r.Summary.Activated = 0, 0, 0
	r.Verdict = verdict(r)

	counts := r.Summary
	counts.Unchanged, counts.Retained = 0, 0
	counts.Active, counts.Inactive, counts.Definitions = 0, 0, 0
	open := len(r.Checks) + len(r.Fights) + len(r.Bumps) + len(r.Upgrades) + len(r.Restarts) + len(r.Undone) + len(r.Approvals)
	switch {
	case !r.Applied, r.Error != "", r.Verdict.Activation.State != Success, r.Verdict.Drift.State != Success:
		return r, false
	}
	return r, counts == (Summary{}) && open == 0 && !slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Action.Writes() })
}
