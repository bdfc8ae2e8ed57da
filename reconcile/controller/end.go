package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/fleet"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	runtimereconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// finalizer keeps a Sync object with deletionPolicy Delete until its objects are deleted.
const finalizer = "headgate.dev/delete"

// endAgain is when a deletion that is held or failed is tried again, unless another approval makes it earlier.
const endAgain = time.Minute

// mark makes the object have the finalizer if, and only if, its end deletes objects.
func (c *controller) mark(ctx context.Context, s *v1alpha1.Sync) error {
	with := s.DeepCopy()
	changes := controllerutil.RemoveFinalizer
	if s.Spec.DeletionPolicy == v1alpha1.DeletionDelete {
		changes = controllerutil.AddFinalizer
	}
	if !changes(with, finalizer) {
		return nil
	}
	return c.client.Patch(ctx, with, client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldOwner))
}

// end ends a Sync whose object is being deleted. Its objects are deleted if deletionPolicy says so and nothing else takes the object away;
// otherwise they stay.
func (c *controller) end(ctx context.Context, s *v1alpha1.Sync, one *subject) (runtimereconcile.Result, error) {
	name := fleet.NameOf(*s)
	c.fleet.Remove(name)
	if !controllerutil.ContainsFinalizer(s, finalizer) {
		return runtimereconcile.Result{}, nil
	}
	why, err := c.orphans(ctx, s)
	if err != nil {
		return runtimereconcile.Result{}, err
	}
	if why != "" {
		slog.Warn("the objects of a deleted Sync stay", "sync", name.String(), "because", why)
		return runtimereconcile.Result{}, c.release(ctx, s)
	}
	began := time.Now()
	done, err := c.destroy(ctx, *s.DeepCopy(), one)
	one.hear(s.Generation, reconcile.Event{Kind: reconcile.Passed, Report: done, Err: err, Took: time.Since(began)})
	if err != nil || done.Verdict.ExitCode != report.ExitSuccess {
		slog.Warn("the objects of a deleted Sync are not all deleted", "sync", name.String(), "activation", done.Verdict.Activation.Description, "error", err)
		return runtimereconcile.Result{RequeueAfter: endAgain}, nil
	}
	c.Metrics.Forget(name.Namespace, name.Name)
	slog.Info("the objects of a deleted Sync are deleted", "sync", name.String(), "pruned", done.Summary.Pruned)
	return runtimereconcile.Result{}, c.release(ctx, s)
}

// release takes the finalizer off, so that the object goes.
func (c *controller) release(ctx context.Context, s *v1alpha1.Sync) error {
	with := s.DeepCopy()
	controllerutil.RemoveFinalizer(with, finalizer)
	return client.IgnoreNotFound(c.client.Patch(ctx, with, client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldOwner)))
}

// orphans returns why the objects of a deleted Sync stay; "" if they do not. A Sync that goes with its CRD or its namespace was not deleted
// by its owner, and a service account that is gone may not delete anything.
func (c *controller) orphans(ctx context.Context, s *v1alpha1.Sync) (string, error) {
	if s.Spec.DeletionPolicy != v1alpha1.DeletionDelete {
		return "its deletionPolicy is Orphan", nil
	}
	if s.Spec.Suspend {
		return "it is suspended", nil
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	namespace := &core.Namespace{}
	for _, of := range []struct {
		object client.Object
		name   string
		why    string
	}{
		{crd, crdOfSyncs, "the CRD of all Syncs is being deleted"},
		{namespace, s.Namespace, "its namespace is being deleted"},
	} {
		err := c.direct.Get(ctx, client.ObjectKey{Name: of.name}, of.object)
		switch {
		case apierrors.IsNotFound(err), err == nil && !of.object.GetDeletionTimestamp().IsZero():
			return of.why, nil
		case err != nil:
			return "", fmt.Errorf("it is not known whether the Sync goes with its CRD or its namespace: %w", err)
		}
	}
	if no, refused := errors.AsType[*refusal](c.admit(*s)); refused {
		return no.Error(), nil
	}
	_, err := c.place(ctx, *s)
	if no, refused := errors.AsType[*refusal](err); refused {
		return no.Error(), nil
	}
	if err := c.hasAccount(ctx, *s); apierrors.IsNotFound(err) {
		return "its service account is gone", nil
	} else if err != nil {
		return "", err
	}
	return "", nil
}

// destroy deletes the objects of a Sync, as far as guards allow.
func (c *controller) destroy(ctx context.Context, s v1alpha1.Sync, one *subject) (report.Report, error) {
	s.Default()
	at, err := c.place(ctx, s)
	if err != nil {
		return report.Report{}, err
	}
	around := c.around(s, one, at)
	around.Peers = nil
	as, err := c.Wire(s, around)
	if err != nil {
		return report.Report{}, err
	}
	as.Loop.Reconciler.Notice = func(what string) {
		one.hear(s.Generation, reconcile.Event{Kind: reconcile.Waiting, For: what})
	}
	done, err := as.Loop.Reconciler.Destroy(ctx, plan.Destroying)
	return done, errors.Join(err, as.Close())
}
