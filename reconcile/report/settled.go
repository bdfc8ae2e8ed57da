package report

// Settled reports whether a pass left everything as it was, and nothing is open: nothing was written, held or late, nothing drifted, and
// no other tool still has to act. Another pass over the same would have the same report.
func (r Report) Settled() bool {
	counts := r.Summary
	counts.Unchanged, counts.Retained = 0, 0
	counts.Active, counts.Inactive, counts.Definitions = 0, 0, 0
	open := len(r.Checks) + len(r.Fights) + len(r.Bumps) + len(r.Upgrades) + len(r.Restarts) + len(r.Undone) + len(r.Approvals)
	switch {
	case !r.Applied, r.Error != "", r.Verdict.Activation.State != Success, r.Verdict.Drift.State != Success:
		return false
	}
	return counts == (Summary{}) && open == 0
}
