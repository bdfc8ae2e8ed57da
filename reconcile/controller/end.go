package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/target"

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

const (
	endAgain = time.Minute     // until a deletion that is held or failed is tried again, unless another approval makes it earlier
	heirTime = 5 * time.Second // until a deletion that waits for other Syncs is tried again
)

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
	name := target.NameOf(*s)
	c.fleet.Remove(name)
	c.Around.Forget(name)
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
	one.ends = cmp.Or(one.ends, began)
	ends := *s.DeepCopy()
	ends.Default()
	at, err := c.place(ctx, ends)
	if err != nil {
		return runtimereconcile.Result{}, err
	}
	heirs := c.heirs(ends, one.ends, at)
	done, err := c.destroy(ctx, ends, one, at, heirs)
	c.Around.Peers.Inherit(heirs)
	one.hear(s.Generation, reconcile.Event{Kind: reconcile.Passed, Report: done, Err: err, Took: time.Since(began)})
	if err != nil || !isOver(done.Verdict) {
		slog.Warn("the objects of a deleted Sync are not all deleted", "sync", name.String(), "activation", done.Verdict.Activation.Description, "error", err)
		if awaits := awaited(heirs); awaits != "" {
			one.hear(s.Generation, reconcile.Event{Kind: reconcile.Waiting, For: "other Syncs to render their commit: " + awaits})
			return runtimereconcile.Result{RequeueAfter: heirTime}, nil
		}
		return runtimereconcile.Result{RequeueAfter: endAgain}, nil
	}
	c.Metrics.Forget(name.Namespace, name.Name)
	slog.Info("the objects of a deleted Sync are deleted", "sync", name.String(), "pruned", done.Summary.Pruned)
	return runtimereconcile.Result{}, c.release(ctx, s)
}

// isOver reports whether an end has left nothing: a verdict with steps that wait has no error.
func isOver(v report.Verdict) bool {
	return v.ExitCode == report.ExitSuccess && v.Activation.State == report.Success
}

// heirs returns the Syncs that may take over objects of a Sync that ends.
func (c *controller) heirs(s v1alpha1.Sync, since time.Time, at destination) []facts.Peer {
	member, _ := target.MemberOf(s)
	member.Cluster = at.apart
	return c.Around.Peers.Heirs(target.NameOf(s), reconcile.End{Member: member, Since: since, Timeout: s.Spec.Timeout.Duration()})
}

// awaited returns the names of the Syncs that an end waits for.
func awaited(heirs []facts.Peer) string {
	var names []string
	for _, heir := range heirs {
		if heir.Declares == nil {
			names = append(names, heir.Sync.String())
		}
	}
	return strings.Join(names, ", ")
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

// destroy deletes the objects of a Sync, as far as guards allow. Others take over those that they declare.
func (c *controller) destroy(ctx context.Context, s v1alpha1.Sync, one *subject, at destination, heirs []facts.Peer) (report.Report, error) {
	around := c.around(s, one, at)
	as, err := c.Wire(s, around)
	if err != nil {
		return report.Report{}, err
	}
	as.Loop.Reconciler.Heirs = heirs
	as.Loop.Reconciler.Notice = func(what string) {
		one.hear(s.Generation, reconcile.Event{Kind: reconcile.Waiting, For: what})
	}
	done, err := as.Loop.Reconciler.Destroy(ctx, plan.Destroying)
	return done, errors.Join(err, as.Close())
}
