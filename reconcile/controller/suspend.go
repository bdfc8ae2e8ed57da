package controller

import (
	"fmt"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// suspend records in the status whether the object is suspended. It returns when the suspension becomes overdue; 0 for never.
func (j *subject) suspend(s *v1alpha1.Sync) (overdue time.Duration) {
	now := metav1.Now()
	j.mu.Lock()
	before := j.status
	next := suspended(before, *s, now)
	j.status = next
	j.mu.Unlock()
	if !equality.Semantic.DeepEqual(before, next) {
		j.tell(before, next, "")
		j.write()
	}
	if of := s.Spec.Suspension; s.Spec.Suspend && of != nil && of.Until != nil {
		return max(0, of.Until.Sub(now.Time))
	}
	return 0
}

// suspended returns the status of a Sync that is suspended, or is not any more.
func suspended(s v1alpha1.Status, of v1alpha1.Sync, now metav1.Time) v1alpha1.Status {
	next := at(s, of.Generation, now)
	if !of.Spec.Suspend {
		next.without(v1alpha1.ConditionSuspended)
		return next.Status
	}
	why, message := v1alpha1.ReasonSuspended, "nothing is written: "+of.Spec.Suspended()
	if due := of.Spec.Suspension; due != nil && due.Until != nil && !now.Before(due.Until) {
		why, message = v1alpha1.ReasonOverdue, "the suspension should have ended: "+of.Spec.Suspended()
	}
	next.set(v1alpha1.ConditionSuspended, metav1.ConditionTrue, why, message+fmt.Sprintf("; 'headgate resume sync %s -n %s' ends it", of.Name, of.Namespace))
	return next.Status
}
