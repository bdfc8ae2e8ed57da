package report

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Holds returns the held steps in the form of the inventory. New holds begin at now.
func (r Report) Holds(now metav1.Time) inventory.Holds {
	var all inventory.Holds
	for _, s := range r.Steps {
		if s.Action != plan.Hold {
			continue
		}
		h := inventory.Hold{Guard: string(s.Guard), Action: string(s.Would), Code: string(s.Code), Reason: s.Reason, Since: now, Commit: r.Revision}
		if s.approvable {
			h.Digest = r.Approval.Digest
		}
		if s.Since != nil {
			h.Since, h.Commit = *s.Since, s.SinceCommit
		}
		all = all.With(h, s.hold, s.ID.String())
	}
	return all
}

// staysHeld reports whether a step was held before the report's commit, which does not change it.
func (r Report) staysHeld(s Step) bool {
	return s.Action == plan.Hold && s.Since != nil && r.Revision != "" && s.SinceCommit != r.Revision
}

// stillHeld describes the steps that were held before the report's commit, or returns "": "1 prune still held (since 12 Nov)".
func (r Report) stillHeld() string {
	prunes, n := 0, 0
	var since metav1.Time
	for _, s := range r.Steps {
		if !r.staysHeld(s) {
			continue
		}
		if n == 0 || s.Since.Before(&since) {
			since = *s.Since
		}
		n++
		if s.Would == plan.Prune {
			prunes++
		}
	}
	what := "step"
	switch n {
	case 0:
		return ""
	case prunes:
		what = "prune"
	}
	return fmt.Sprintf("%s still held (since %s)", manifest.Count(n, what), since.UTC().Format("2 Jan"))
}

// newlyHeld reports whether steps are held because of the report's commit, and describes them.
func (r Report) newlyHeld() (string, bool) {
	names := r.named(func(s Step) bool { return s.Action == plan.Hold && !r.staysHeld(s) })
	if len(names) == 0 {
		return "", false
	}
	parts := []string{fmt.Sprintf("%d held: %s", len(names), andMore(names))}
	if still := r.stillHeld(); still != "" {
		parts = append(parts, still)
	}
	return strings.Join(parts, "; "), true
}

// waitForHeld returns the number of steps that wait for a held one. More time does not help them.
func (r Report) waitForHeld() int {
	n := 0
	for _, s := range r.Steps {
		if s.Error == "" && slices.Contains(s.WaitCodes, plan.AwaitsHeld) {
			n++
		}
	}
	return n
}
