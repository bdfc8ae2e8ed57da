package report

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
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
			h.Digest, h.UpTo = r.Approval.Digest, r.Approval.UpTo
		}
		if s.Since != nil {
			h.Since, h.Commit = *s.Since, s.SinceCommit
		}
		all = all.With(h, s.key, s.ID.String())
	}
	return all
}

// staysHeld reports whether a step was held before the report's commit, which does not change it.
func (r Report) staysHeld(s Step) bool {
	return s.Since != nil && r.Revision != "" && s.SinceCommit != r.Revision
}

// WaitingPrunes returns the number of prunes that wait for creates and updates.
func (r Report) WaitingPrunes() int {
	n := 0
	for _, s := range r.Steps {
		if s.Undone != "" {
			n++
		}
	}
	return n
}

// prunesWait describes the prunes that wait for creates and updates, or returns "": "2 prunes wait: ConfigMap a/b failed since 12 Nov
// 10:00".
func (r Report) prunesWait() string {
	n, why := 0, ""
	for _, s := range r.Steps {
		if s.Undone != "" {
			n, why = n+1, s.Undone
		}
	}
	if n == 0 {
		return ""
	}
	return moreOf(n, "prune waits", "prunes wait") + ": " + why
}

// stillHeld describes the steps that were held before the report's commit, or returns "": "1 prune still held (since 12 Nov)".
func (r Report) stillHeld() string {
	prunes, n := 0, 0
	var since metav1.Time
	for _, s := range r.Steps {
		if !r.staysHeld(s) || s.Undone != "" {
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

// newlyHeld reports whether steps are held because of the report's commit, and describes them, except prunes that only wait.
func (r Report) newlyHeld() (string, bool) {
	fresh := func(s Step) bool { return s.Action == plan.Hold && s.Code != reason.StillWaits && !r.staysHeld(s) }
	names := r.named(func(s Step) bool { return fresh(s) && s.Undone == "" })
	held := ""
	if len(names) > 0 {
		held = fmt.Sprintf("%d held: %s", len(names), andMore(names))
	}
	return joined(held, r.stillHeld()), slices.ContainsFunc(r.Steps, fresh)
}

// joined joins the parts of a description, without empty ones.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

// waitForHeld returns the number of steps that wait for a held one. More time does not help them.
func (r Report) waitForHeld() int {
	n := 0
	for _, s := range r.Steps {
		if s.Error == "" && slices.Contains(s.WaitCodes, reason.AwaitsHeld) {
			n++
		}
	}
	return n
}
