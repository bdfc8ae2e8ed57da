package cluster

import (
	"context"

	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Secret reads one Secret in the namespace of the sync. It may be called while a pass runs. Its errors contain nothing from the
// Secret.
func (c *Cluster) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	s, err := c.core.Secrets(c.sync.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, c.explain(err, "get", "the Secret "+c.sync.Namespace+"/"+name)
	}
	return s.Data, nil
}

// Secrets returns how Secrets in the namespace of a sync are read from another cluster than the one that it applies to. It sends no request.
func Secrets(config *rest.Config, of inventory.Sync) (func(ctx context.Context, name string) (map[string][]byte, error), error) {
	c, err := connect(config, of, Options{}, newThrottle())
	if err != nil {
		return nil, err
	}
	return c.Secret, nil
}
