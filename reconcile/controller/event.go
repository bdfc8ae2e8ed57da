package controller

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/report"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// metadataOf returns the annotations in which Flux's notification-controller looks for the revision of an Event, and for its commit. The
// artifact of an image may have no commit. commit_status is left out: it is for events that are nothing but a status.
func metadataOf(revision string) map[string]string {
	const group = "event.toolkit.fluxcd.io/"
	metadata := map[string]string{group + "revision": revision}
	if commits.MatchString(revision) {
		metadata[group+"commit"] = revision
	}
	return metadata
}

var commits = regexp.MustCompile(`^[0-9a-f]{40}$`)

// told lists the conditions whose changes become Events, and the status that calls for a person.
var told = []struct {
	condition string
	bad       metav1.ConditionStatus
}{
	{v1alpha1.ConditionReady, metav1.ConditionFalse},
	{v1alpha1.ConditionHeld, metav1.ConditionTrue},
	{v1alpha1.ConditionDrifted, metav1.ConditionTrue},
	{v1alpha1.ConditionSuspended, metav1.ConditionTrue},
	{v1alpha1.ConditionSourceReady, metav1.ConditionFalse},
}

// tell creates an Event for each condition that changed between two statuses, with the reason and the message of the condition. What is as
// it should be is told only once it was not. done is what a pass changed in the cluster: Ready tells it.
func (j *subject) tell(before, after v1alpha1.Status, done string) {
	for _, one := range told {
		was, is := meta.FindStatusCondition(before.Conditions, one.condition), meta.FindStatusCondition(after.Conditions, one.condition)
		ready := one.condition == v1alpha1.ConditionReady
		switch {
		case is == nil || is.Status == metav1.ConditionUnknown:
		case ready && is.Status != one.bad && done != "":
			j.event(core.EventTypeNormal, is.Reason, ofCommit(after.LastAttemptedRevision)+done)
		case was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message:
		case is.Status == one.bad:
			j.event(core.EventTypeWarning, is.Reason, is.Message)
		case ready && (was == nil || was.Status != is.Status), was != nil && was.Status == one.bad:
			j.event(core.EventTypeNormal, is.Reason, is.Message)
		}
	}
}

// tellRestarts creates an Event for each provider that has to restart because of a pass.
func (j *subject) tellRestarts(r report.Report) {
	for _, restart := range r.Restarts {
		f := restart.Finding()
		j.event(core.EventTypeNormal, v1alpha1.EventRestartProvider, f.Message+"; "+f.Fix)
	}
}

// warn creates an Event if the Sync has fields that go.
func (j *subject) warn(s v1alpha1.Sync, all []v1alpha1.Removal) {
	if len(all) == 0 {
		return
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		slog.Error("a Sync cannot be encoded", "sync", s.Namespace+"/"+s.Name, "error", err)
		return
	}
	if warnings := v1alpha1.Warnings(content, all); len(warnings) > 0 {
		j.event(core.EventTypeWarning, v1alpha1.EventFieldGoes, strings.Join(warnings, "; "))
	}
}

// event creates an Event of the object, unless it is the last one again.
func (j *subject) event(kind, reason, message string) {
	j.mu.Lock()
	object, revision := j.object, j.status.LastAttemptedRevision
	again := j.lastEvent == reason+message
	j.lastEvent = reason + message
	j.mu.Unlock()
	if again {
		return
	}
	now := metav1.Now()
	e := &core.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: fmt.Sprintf("%.200s.%x", object.Name, now.UnixNano()), Annotations: metadataOf(revision),
		},
		InvolvedObject: core.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind, Namespace: object.Namespace, Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion,
		},
		Type: kind, Reason: reason, Message: fmt.Sprintf("%.1000s", message), Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: core.EventSource{Component: fieldOwner}, ReportingController: fieldOwner,
	}
	select {
	case j.of.events <- e:
	default: // Events are best effort; the status has all that matters
	}
}

// createEvents creates the Events that subjects tell of, until ctx is done and none is left.
func (c *controller) createEvents(ctx context.Context) {
	create := func(e *core.Event, within time.Duration) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		if err := engine.Caught("write of an Event", func() error { return c.client.Create(ctx, e) }); err != nil {
			slog.Warn("an Event could not be created", "sync", e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name, "reason", e.Reason, "error", err)
		}
	}
	for {
		select {
		case e := <-c.events:
			create(e, answerTime)
		case <-ctx.Done():
			for len(c.events) > 0 {
				create(<-c.events, lastWords/4)
			}
			return
		}
	}
}
