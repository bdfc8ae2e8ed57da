package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
