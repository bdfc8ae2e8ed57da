package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"

	corev1 "k8s.io/api/core/v1"
)

// grantsAnnotation records the approvals that were used.
const grantsAnnotation = "headgate.dev/approvals"

// A pass carries out the steps that a used approval has left, and asks nobody again. A proof with the key of the sync shows that Headgate recorded
// these steps: the right to write a ConfigMap is not the right to approve.

// withFormat is how grants are stored. A binary without inventory.Record expects a list there, and refuses the inventory if it finds
// something else.
type withFormat struct {
	Format int               `json:"format"`
	Grants []inventory.Grant `json:"grants,omitempty"`
	Proof  string            `json:"proof,omitempty"` // of the steps that are left; "" if none are
}

// grants returns the grants of a stored inventory. Without a proof, no steps are left.
func (c *Store) grants(ctx context.Context, m *corev1.ConfigMap) ([]inventory.Grant, error) {
	stored, err := grantsOf(m)
	if err != nil || !slices.ContainsFunc(stored.Grants, hasLeft) {
		return stored.Grants, err
	}
	if err := c.readKey(ctx); err != nil {
		return nil, err
	}
	if hmac.Equal([]byte(stored.Proof), []byte(c.proof(stored.Grants))) {
		return stored.Grants, nil
	}
	for i := range stored.Grants {
		stored.Grants[i].Left = nil
	}
	return stored.Grants, nil
}

// proven returns grants as they are stored. It stores the key, which a proof needs.
func (c *Store) proven(ctx context.Context, grants []inventory.Grant) (withFormat, error) {
	stored := withFormat{Format: inventory.Format, Grants: grants}
	if !slices.ContainsFunc(grants, hasLeft) {
		return stored, nil
	}
	if err := c.readKey(ctx); err != nil {
		return stored, err
	}
	if err := c.KeepKey(ctx); err != nil {
		return stored, err
	}
	stored.Proof = c.proof(grants)
	return stored, nil
}

func hasLeft(g inventory.Grant) bool { return len(g.Left) > 0 }

// proof returns a value for the steps that grants have left, which can only be computed with the key.
func (c *Store) proof(grants []inventory.Grant) string {
	keyed := hmac.New(sha256.New, c.key.bytes)
	fmt.Fprintf(keyed, "%q\n", c.Sync.Key())
	for _, g := range grants {
		fmt.Fprintf(keyed, "%q %q %q %q %q %q\n", g.Digest, g.Of, g.Commit, g.By, g.How, g.Left)
	}
	return inventory.Hash(keyed.Sum(nil))
}

func grantsOf(m *corev1.ConfigMap) (stored withFormat, err error) {
	text := m.Annotations[grantsAnnotation]
	switch {
	case text == "":
		return stored, nil
	case strings.HasPrefix(strings.TrimSpace(text), "{"):
		err = json.Unmarshal([]byte(text), &stored)
	default:
		err = json.Unmarshal([]byte(text), &stored.Grants)
	}
	if err != nil {
		return stored, fmt.Errorf("the annotation %s cannot be read: %w", grantsAnnotation, err)
	}
	return stored, nil
}
