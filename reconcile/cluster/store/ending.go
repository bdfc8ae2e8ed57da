package store

import (
	"context"
	"errors"
	"fmt"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/reason"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Forget deletes the records of a sync that owns nothing any more. It deletes the inventory last, so that an interrupted ending can
// be repeated.
func (c *Store) Forget(ctx context.Context, l *Lock, inv inventory.Inventory) error {
	if len(inv.Entries) > 0 {
		return fmt.Errorf("the inventory of %s still holds %d objects", c.Sync, len(inv.Entries))
	}
	if err := c.forgetKey(ctx); err != nil {
		return err
	}
	c.sweep(ctx, layout{})
	if err := l.drop(ctx); err != nil {
		return err
	}
	name := api.InventoryName(c.Sync)
	err := api.Retry(ctx, func() error {
		return c.Core.ConfigMaps(c.Sync.Namespace).Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &c.stored.UID, ResourceVersion: &inv.ResourceVersion},
		})
	})
	switch {
	case apierrors.IsConflict(err):
		return errors.Join(reason.ErrMoved, err)
	case err != nil && !apierrors.IsNotFound(err):
		return c.Explain(err, "delete", "the inventory ConfigMap "+c.Sync.Namespace+"/"+name)
	}
	c.stored, c.siblings = nil, nil
	return nil
}

// forgetKey deletes the key for the digests of Secrets. A Secret of this name without a key belongs to another tool. Without the
// right to read Secrets, no key was ever stored.
func (c *Store) forgetKey(ctx context.Context) error {
	c.key = digestKey{}
	at, name := c.Core.Secrets(c.Sync.Namespace), api.InventoryName(c.Sync)
	s, err := at.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && len(s.Data[keyName]) == 0 {
		return nil
	}
	if err == nil {
		err = api.Retry(ctx, func() error {
			return at.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID}})
		})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return c.Explain(err, "delete", "the Secret "+c.Sync.Namespace+"/"+name)
}
