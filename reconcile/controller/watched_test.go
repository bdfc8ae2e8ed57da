package controller

import (
	"errors"
	"testing"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/meta"
)

// Watches begin beside the first pass, and may fail before it: the begin of the pass must not hide that.
func TestAWatchFailsBeforeTheFirstPass(t *testing.T) {
	u, s := unwatched{}, v1alpha1.Status{}
	for _, e := range []reconcile.Event{{Kind: reconcile.WatchFailed, For: "ConfigMaps", Err: errors.New("forbidden")}, {Kind: reconcile.Began}} {
		s, _ = after(s, 1, "", e)
		s = u.after(s, 1, e, 0)
	}
	if meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionWatched) == nil {
		t.Errorf("the status does not show what is not watched: %+v", s.Conditions)
	}
}
