package report

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
)

// A Standing is what one sync concludes about a commit that all syncs of a cluster take up.
type Standing struct {
	Sync    inventory.Sync
	Verdict Verdict
	Known   bool // false while the sync has not taken up the commit
}

// OfCluster returns the report of a cluster on a commit, from what all of its syncs conclude. It names the worst of them. Its Sync is
// zero. final reports whether every sync has ended with the commit. There is no report (ok is false) while a sync has not taken up the
// commit, unless another one is still at work or has failed: a process that begins must not replace the final status of a commit.
//
// A report that is not final has few texts, whatever the syncs do, so that it does not change with each of them.
func OfCluster(revision string, all []Standing) (r Report, final, ok bool) {
	r = blank(inventory.Sync{}, revision)
	r.Applied = true
	r.Verdict.Activation = together(all, func(v Verdict) Status { return v.Activation })
	r.Verdict.Drift = together(all, func(v Verdict) Status { return v.Drift })
	if len(all) == 1 {
		r.Verdict = all[0].Verdict
	}
	if r.Verdict.Activation.Description == "" {
		r.Verdict.Activation.Description = fine(all)
	}
	if r.Verdict.Drift.Description == "" {
		r.Verdict.Drift.Description = fmt.Sprintf("no drift in %d syncs", len(all))
	}
	known, begun := 0, false
	final = true
	for _, s := range all {
		if !s.Known {
			continue
		}
		known++
		open := s.Verdict.Activation.State == Pending || s.Verdict.Drift.State == Pending
		final = final && !open
		begun = begun || s.Verdict.Activation.State != Success || s.Verdict.Drift.State != Success
	}
	final = final && known == len(all)
	return r, final, known > 0 && (final || begun)
}

// together returns one status for those of several syncs, without a description if all are a success.
func together(all []Standing, of func(Verdict) Status) Status {
	var red []Standing
	open := false
	for _, s := range all {
		switch state := of(s.Verdict).State; {
		case !s.Known || state == Pending:
			open = true
		case state == Failure || state == Error:
			red = append(red, s)
		}
	}
	switch {
	case len(red) > 0:
		return worstOf(red, len(all), of)
	case open:
		return Status{Pending, fmt.Sprintf("not all of %d syncs have ended with the commit", len(all))}
	}
	return Status{State: Success}
}

// fine describes the success of several syncs. It names one that still holds something.
func fine(all []Standing) string {
	held := slices.DeleteFunc(slices.Clone(all), func(s Standing) bool { return s.Verdict.ExitCode == ExitSuccess })
	if len(held) == 0 {
		return fmt.Sprintf("%d syncs are as the commit wants", len(all))
	}
	return worstOf(held, len(all), func(v Verdict) Status { return v.Activation }).Description
}

// worstOf returns the status of the worst sync, with its name and the number of the others.
func worstOf(some []Standing, total int, of func(Verdict) Status) Status {
	rank := map[State]int{Error: 0, Failure: 1}
	worst := slices.MinFunc(some, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(rank[of(a.Verdict).State], rank[of(b.Verdict).State]), cmp.Compare(a.Sync.String(), b.Sync.String()))
	})
	status := of(worst.Verdict)
	name := worst.Sync.Name
	if len(some) > 1 {
		name = fmt.Sprintf("%s and %d more of %d", name, len(some)-1, total)
	}
	status.Description = name + ": " + status.Description
	return status
}
