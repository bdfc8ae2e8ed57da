package store

import (
	"context"
	"crypto/rand"
	"slices"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keyName is the data key of the Secret that holds the key for the digests of Secrets, and for proofs. Without that key, readers of the
// inventory cannot guess passwords from a digest, and users who write it cannot approve.
const keyName = render.DigestKey

// A digestKey is the key for the digests of Secrets. If it is missing, a new one is generated. Objects with a digest made with
// another key are checked again.
type digestKey struct {
	bytes []byte
	kept  bool // it is in the cluster, or Headgate may not store it there
}

// KeyFor returns the key if a Secret is wanted, or if a wanted or recorded object needs proof. It writes nothing.
func (c *Store) KeyFor(ctx context.Context, asked []facts.Asked, have inventory.Inventory) ([]byte, error) {
	needed := slices.ContainsFunc(asked, func(a facts.Asked) bool { return a.ID.IsSecret() || a.Secret || a.Policy.NeedsProof() })
	wanted := make(map[manifest.ID]bool, len(asked))
	for _, a := range asked {
		wanted[a.ID] = true
	}
	for id, e := range have.Entries {
		// The CRD of a definition that is not wanted any more will need proof.
		needed = needed || e.Policy.NeedsProof() || crossplane.IsMRD(id) && !wanted[id]
	}
	if !needed {
		return c.key.bytes, nil
	}
	err := c.readKey(ctx)
	return c.key.bytes, err
}

// readKey reads the key, unless it is known. If there is none, it makes one, and writes nothing.
func (c *Store) readKey(ctx context.Context) error {
	if c.key.bytes != nil {
		return nil
	}
	s, err := c.Core.Secrets(c.Sync.Namespace).Get(ctx, api.InventoryName(c.Sync), metav1.GetOptions{})
	switch {
	case err == nil && len(s.Data[keyName]) > 0:
		c.key = digestKey{s.Data[keyName], true}
		return nil
	case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return c.Explain(err, "get", "the Secret "+c.Sync.Namespace+"/"+api.InventoryName(c.Sync))
	}
	c.key = digestKey{bytes: make([]byte, 32), kept: err == nil} // if the Secret exists without a key, it belongs to another tool
	_, _ = rand.Read(c.key.bytes)                                // never fails
	return nil
}

// KeepKey stores a generated key. If another process has stored one first, that key counts.
func (c *Store) KeepKey(ctx context.Context) error {
	if c.key.bytes == nil || c.key.kept {
		return nil
	}
	s := &core.Secret{Data: map[string][]byte{keyName: c.key.bytes}}
	s.Namespace, s.Name = c.Sync.Namespace, api.InventoryName(c.Sync)
	err := api.Retry(ctx, func() error {
		_, err := c.Core.Secrets(s.Namespace).Create(ctx, s, metav1.CreateOptions{FieldManager: inventory.Manager})
		return err
	})
	switch {
	case apierrors.IsAlreadyExists(err):
		c.key = digestKey{}
		return reason.ErrMoved
	case err != nil && !api.IsRBAC(err): // a webhook or a quota may allow it later
		return c.Explain(err, "create", "the Secret "+s.Namespace+"/"+s.Name)
	}
	c.key.kept = true
	return nil
}
