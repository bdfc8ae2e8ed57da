package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
)

// A Standing is what one sync concludes about a commit that all syncs of a cluster take up.
type Standing struct {
	Sync    inventory.Sync
	Verdict Verdict
	Known   bool // false while the sync has not taken up the commit
}

// A Progress is how far the syncs of a cluster are with a commit.
type Progress int

// How far syncs are.
const (
	Unclear Progress = iota // nothing may be posted: a process that begins must not replace the final status of a commit
	Begun                   // some are at work
	Late                    // all are done but one or two, which have not taken up the commit
	Over                    // all have ended with it
)

// mostLate is the number of syncs that a status names because they have not taken up a commit. Each of them may cause another post.
const mostLate = 2

// OfCluster returns the report of a cluster on a commit, from what all of its syncs conclude. It names the worst of them. Its Sync is
// zero. isNew is set if no earlier process has posted on the commit.
//
// A report of a commit with Begun has few texts, whatever the syncs do, so that it does not change with each of them.
func OfCluster(revision string, all []Standing, isNew bool) (Report, Progress) {
	r := blank(inventory.Sync{}, revision)
	r.Applied = true
	is, open := progress(all, isNew)
	r.Verdict.Activation = together(all, open, func(v Verdict) Status { return v.Activation })
	r.Verdict.Drift = together(all, open, func(v Verdict) Status { return v.Drift })
	if len(all) == 1 {
		r.Verdict = all[0].Verdict
	}
	if r.Verdict.Activation.Description == "" {
		r.Verdict.Activation.Description = fine(all)
	}
	if r.Verdict.Drift.Description == "" {
		r.Verdict.Drift.Description = fmt.Sprintf("no drift in %d syncs", len(all))
	}
	return r, is
}

// progress returns how far the syncs are, and the description of a status until all have ended.
func progress(all []Standing, isNew bool) (is Progress, open string) {
	var late []string
	works, begun := false, isNew
	for _, s := range all {
		if !s.Known {
			late = append(late, s.Sync.Name)
			continue
		}
		works = works || s.Verdict.Activation.State == Pending || s.Verdict.Drift.State == Pending
		begun = begun || s.Verdict.Activation.State != Success || s.Verdict.Drift.State != Success
	}
	open = fmt.Sprintf("not all of %d syncs have ended with the commit", len(all))
	switch {
	case len(late) == 0 && !works:
		return Over, ""
	case len(late) == len(all), !begun:
		return Unclear, open
	case works || len(late) > mostLate:
		return Begun, open
	case len(late) == 1:
		return Late, late[0] + " has not taken up this commit yet"
	}
	return Late, strings.Join(late, " and ") + " have not taken up this commit yet"
}

// together returns one status for those of several syncs, without a description if all are a success.
func together(all []Standing, open string, of func(Verdict) Status) Status {
	var red []Standing
	isOpen := false
	for _, s := range all {
		switch state := of(s.Verdict).State; {
		case !s.Known || state == Pending:
			isOpen = true
		case state == Failure || state == Error:
			red = append(red, s)
		}
	}
	switch {
	case len(red) > 0:
		return worstOf(red, len(all), of)
	case isOpen:
		return Status{Pending, open}
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
