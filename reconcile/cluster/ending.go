package cluster

import (
	"context"
	"errors"
	"fmt"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// release removes our marks from an object.
func (r *execution) release(ctx context.Context, s plan.Step, id manifest.ID) error {
	return r.amend(ctx, id, func(live *metav1.PartialObjectMetadata) ([]byte, error) {
		if live.UID != s.UID {
			return nil, nil // the present object is a new one, not ours
		}
		return s.Releasing(live, r.sync)
	})
}

// amend patches the current object with this ID. It does nothing if there is no such object, or if patch returns no patch. If
// another writer is faster, it reads and tries again.
func (r *execution) amend(ctx context.Context, id manifest.ID, patch func(live *metav1.PartialObjectMetadata) ([]byte, error)) error {
	gvr, err := r.surface.resource(groupKind(id), "")
	if err != nil {
		return err
	}
	const tries = 5
	for try := 1; ; try++ {
		var live *metav1.PartialObjectMetadata
		err := retry(ctx, func() error {
			live, err = r.get(ctx, r.surface, id)
			return err
		})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return r.refusal(err, "get", id)
		}
		body, err := patch(live)
		if body == nil || err != nil {
			return err
		}
		err = retry(ctx, func() error {
			_, err := r.at(gvr, id).Patch(ctx, id.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: inventory.Manager})
			return err
		})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !apierrors.IsConflict(err):
			return r.refusal(err, "patch", id)
		case try == tries:
			return fmt.Errorf("other writers keep changing the object: %w", err)
		}
	}
}

// forget deletes the records of a sync that owns nothing any more. It deletes the inventory last, so that an interrupted ending can
// be repeated.
func (c *Cluster) forget(ctx context.Context, l *lock, inv inventory.Inventory) error {
	if len(inv.Entries) > 0 {
		return fmt.Errorf("the inventory of %s still holds %d objects", c.sync, len(inv.Entries))
	}
	if err := c.forgetKey(ctx); err != nil {
		return err
	}
	c.sweep(ctx, layout{})
	if err := l.drop(ctx); err != nil {
		return err
	}
	name := inventoryName(c.sync)
	err := retry(ctx, func() error {
		return c.core.ConfigMaps(c.sync.Namespace).Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &c.stored.UID, ResourceVersion: &inv.ResourceVersion},
		})
	})
	switch {
	case apierrors.IsConflict(err):
		return errors.Join(reason.ErrMoved, err)
	case err != nil && !apierrors.IsNotFound(err):
		return c.explain(err, "delete", "the inventory ConfigMap "+c.sync.Namespace+"/"+name)
	}
	c.stored, c.siblings = nil, nil
	return nil
}

// forgetKey deletes the key for the digests of Secrets. A Secret of this name without a key belongs to another tool. Without the
// right to read Secrets, no key was ever stored.
func (c *Cluster) forgetKey(ctx context.Context) error {
	c.key = digestKey{}
	at, name := c.core.Secrets(c.sync.Namespace), inventoryName(c.sync)
	s, err := at.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && len(s.Data[keyName]) == 0 {
		return nil
	}
	if err == nil {
		err = retry(ctx, func() error {
			return at.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID}})
		})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return c.explain(err, "delete", "the Secret "+c.sync.Namespace+"/"+name)
}
