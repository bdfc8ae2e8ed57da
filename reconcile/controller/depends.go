package controller

import (
	"context"
	"fmt"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/target"
	"headgate.dev/headgate/render"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	runtimereconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// An origin is where the commits of a Sync come from. Two Syncs with the same origin get the same commits.
type origin struct {
	repo, ref string
	source    v1alpha1.SourceRef // of Flux
}

func originOf(s v1alpha1.Sync) origin {
	return origin{s.Spec.Source.Repo, s.Spec.Source.Ref, sourceOf(&s)}
}

// lacks returns why a dependency is not as far as a Sync needs it; "" if it is. commit is what the Sync would apply: another Sync of the same
// origin must have applied it, too.
func lacks(s v1alpha1.Sync, on v1alpha1.Dependency, other *v1alpha1.Sync, commit string) string {
	of := other.Status
	switch {
	case of.ObservedGeneration != other.Generation:
		return "is not observed yet"
	case meta.IsStatusConditionTrue(of.Conditions, v1alpha1.ConditionStalled):
		return "is stalled"
	case of.LastAppliedRevision == "" || of.LastAppliedRevision != of.LastAttemptedRevision:
		return "is not applied"
	case originOf(s) == originOf(*other) && of.LastAppliedRevision != commit:
		return fmt.Sprintf("has not applied %.12s", commit)
	case on.Until == v1alpha1.UntilReady && (!meta.IsStatusConditionTrue(of.Conditions, v1alpha1.ConditionReady) || meta.IsStatusConditionTrue(of.Conditions, v1alpha1.ConditionHeld)):
		return "is not ready"
	}
	return ""
}

// A gate is a source that gives a commit only once the dependencies of the Sync are far enough. Until then, a Sync that has applied a commit
// still corrects drift from it, and other Syncs know what the commit declares: a dependency must not prune what moves from it to this Sync.
type gate struct {
	reconcile.Source

	declare func(ctx context.Context, ref string) error

	of   *controller
	sync v1alpha1.Sync
	on   *subject
}

// Fetch fetches a commit.
func (g gate) Fetch(ctx context.Context, ref string) (render.Input, error) {
	in, err := g.Source.Fetch(ctx, ref)
	if err != nil {
		return in, err
	}
	err = g.of.waitsFor(ctx, g.sync, in.Revision)
	g.on.wait(err != nil)
	if err != nil {
		if !g.of.Around.Peers.Knows(target.NameOf(g.sync), in.Revision) {
			_ = g.declare(ctx, ref) // the pass after the wait reports an error
		}
		return render.Input{}, err
	}
	return in, nil
}

// waitsFor returns an error while a dependency of a Sync is not far enough for a commit.
func (c *controller) waitsFor(ctx context.Context, s v1alpha1.Sync, commit string) error {
	for _, on := range s.Spec.DependsOn {
		other := &v1alpha1.Sync{}
		err := c.client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: on.Name}, other)
		switch {
		case apierrors.IsNotFound(err):
			return dependencyError{on.Name, "does not exist"}
		case err != nil:
			return err
		}
		if why := lacks(s, on, other, commit); why != "" {
			return dependencyError{on.Name, why}
		}
	}
	return nil
}

// A dependencyError is why a Sync waits for another one.
type dependencyError struct{ sync, lacks string }

func (e dependencyError) Error() string { return "spec.dependsOn: the Sync " + e.sync + " " + e.lacks }

// Code returns the code of the error, which is the reason of the condition Ready.
func (dependencyError) Code() reason.Code { return reason.DependencyNotReady }

// wait records whether the Sync waits for a dependency.
func (j *subject) wait(is bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waits = is
}

// dependsOn is the index of Syncs by the names of their dependencies. Without it, each new status would cost a copy of all Syncs.
const dependsOn = "spec.dependsOn"

func dependencies(o client.Object) (names []string) {
	if s, is := o.(*v1alpha1.Sync); is {
		for _, d := range s.Spec.DependsOn {
			names = append(names, d.Name)
		}
	}
	return names
}

// dependants returns the Syncs that depend on one.
func (c *controller) dependants(ctx context.Context, on client.Object) []runtimereconcile.Request {
	var all v1alpha1.SyncList
	if err := c.client.List(ctx, &all, client.InNamespace(on.GetNamespace()), client.MatchingFields{dependsOn: on.GetName()}); err != nil {
		return nil // the back-off of those that wait finds it
	}
	var found []runtimereconcile.Request
	for i := range all.Items {
		if s := &all.Items[i]; c.runs(s) {
			found = append(found, runtimereconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return found
}

// progressed matches the changes of a Sync that others may wait for.
func progressed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, is := e.ObjectOld.(*v1alpha1.Sync)
			after, also := e.ObjectNew.(*v1alpha1.Sync)
			if !is || !also {
				return false
			}
			ready := func(s *v1alpha1.Sync) bool {
				return meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady)
			}
			return before.Status.LastAppliedRevision != after.Status.LastAppliedRevision || before.Status.ObservedGeneration != after.Status.ObservedGeneration || ready(before) != ready(after)
		},
	}
}
