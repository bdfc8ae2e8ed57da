package controller

import (
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unwatched is what a Sync cannot watch, and why.
type unwatched map[string]string

// after returns a status that shows what is not watched. Another process may have written that of before: it holds until the second pass of
// this one, because the watches begin beside the first.
func (u unwatched) after(s v1alpha1.Status, generation int64, e reconcile.Event, passes int) v1alpha1.Status {
	next := at(s, generation, metav1.Now())
	switch e.Kind {
	case reconcile.WatchFailed:
		u[e.For] = e.Err.Error()
	case reconcile.Watched:
		delete(u, e.For)
	case reconcile.Began: // which removes the condition of the generation before, also if a watch has failed already
		if len(u) == 0 {
			return s
		}
	case reconcile.Passed:
		if passes < 2 {
			return s
		}
	default:
		return s
	}
	if len(u) == 0 {
		next.without(v1alpha1.ConditionWatched)
		return next.Status
	}
	var why []string
	for _, what := range slices.Sorted(maps.Keys(u)) {
		why = append(why, what+": "+u[what])
	}
	message := "only the passes at spec.interval find the drift of " + strings.Join(why, "; ")
	next.setLong(v1alpha1.ConditionWatched, metav1.ConditionFalse, v1alpha1.ReasonNotWatched, message, 2*v1alpha1.LongestMessage)
	return next.Status
}
