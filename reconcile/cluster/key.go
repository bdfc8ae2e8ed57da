package cluster

import (
	"context"
	"crypto/rand"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keyName is the field of the Secret with the key of the digests of Secrets. Readers of the inventory must not be able
// to guess passwords with a digest.
const keyName = render.DigestKey

// A digestKey is the key of the digests of Secrets. A missing one is generated; an object with a digest from another
// key is checked again.
type digestKey struct {
	bytes []byte
	kept  bool // in the cluster, or Headgate has no right to store it there
}

// keyFor reads the key where a Secret is wanted, or what needs proof is wanted or recorded. It
// writes nothing.
func (c *Cluster) keyFor(ctx context.Context, asked []plan.Asked, have inventory.Inventory) ([]byte, error) {
	needed := slices.ContainsFunc(asked, func(a plan.Asked) bool { return a.ID.IsSecret() || a.Secret || a.Policy.NeedsProof() })
	wanted := make(map[manifest.ID]bool, len(asked))
	for _, a := range asked {
		wanted[a.ID] = true
	}
	for id, e := range have.Entries {
		needed = needed || e.Policy.NeedsProof() || crossplane.IsMRD(id) && !wanted[id] // its CRD will need it
	}
	if !needed || c.key.bytes != nil {
		return c.key.bytes, nil
	}
	s, err := c.core.Secrets(c.sync.Namespace).Get(ctx, inventoryName(c.sync), metav1.GetOptions{})
	switch {
	case err == nil && len(s.Data[keyName]) > 0:
		c.key = digestKey{s.Data[keyName], true}
		return c.key.bytes, nil
	case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return nil, c.explain(err, "get", "the Secret "+c.sync.Namespace+"/"+inventoryName(c.sync))
	}
	c.key = digestKey{bytes: make([]byte, 32), kept: err == nil} // a Secret of that name belongs to another tool
	_, _ = rand.Read(c.key.bytes)                                // which never fails
	return c.key.bytes, nil
}

// keepKey stores a generated key. If another process was faster, its key counts.
func (c *Cluster) keepKey(ctx context.Context) error {
	if c.key.bytes == nil || c.key.kept {
		return nil
	}
	s := &core.Secret{Data: map[string][]byte{keyName: c.key.bytes}}
	s.Namespace, s.Name = c.sync.Namespace, inventoryName(c.sync)
	err := retry(ctx, func() error {
		_, err := c.core.Secrets(s.Namespace).Create(ctx, s, metav1.CreateOptions{FieldManager: inventory.Manager})
		return err
	})
	switch {
	case apierrors.IsAlreadyExists(err):
		c.key = digestKey{}
		return plan.ErrMoved
	case err != nil && !isRBAC(err): // what a webhook or a quota refuses today, it may let in tomorrow
		return c.explain(err, "create", "the Secret "+s.Namespace+"/"+s.Name)
	}
	c.key.kept = true
	return nil
}
