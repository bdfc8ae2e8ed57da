package report

import (
	"cmp"
	"fmt"
	"slices"
)

// A PullVerdict is the verdict on one of the pull requests that have the same head.
type PullVerdict struct {
	Pull   int
	Target string
	Status Status
}

// Worst returns the status of a head from the verdicts on its pull requests: the worst one, and of equal ones that on the lowest
// number.
func Worst(all []PullVerdict) Status {
	worst := slices.MinFunc(all, func(a, b PullVerdict) int {
		return cmp.Or(cmp.Compare(severity(b.Status.State), severity(a.Status.State)), cmp.Compare(a.Pull, b.Pull))
	})
	if len(all) == 1 || worst.Status.WasStopped() { // this description must remain at the beginning
		return worst.Status
	}
	return Status{worst.Status.State, fmt.Sprintf("pull request %d into %s: %s", worst.Pull, worst.Target, worst.Status.Description)}
}
