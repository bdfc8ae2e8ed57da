package observe

import (
	"context"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// sources reads the objects that references copy fields from, with one request each.
func (c *Reader) sources(ctx context.Context, seen facts.Observed, want render.Desired, sp api.Spelling) (map[manifest.ID]facts.ReferenceSource, error) {
	ids := demand.SourcesOf(seen, want)
	if len(ids) == 0 {
		return nil, nil
	}
	all, err := api.InParallel(ctx, c.Concurrency, ids, func(ctx context.Context, id manifest.ID) (facts.ReferenceSource, error) {
		return c.source(ctx, sp.Actual(id))
	})
	if err != nil {
		return nil, err
	}
	found := make(map[manifest.ID]facts.ReferenceSource, len(ids))
	for i, id := range ids {
		found[id] = all[i]
	}
	return found, nil
}

func (c *Reader) source(ctx context.Context, id manifest.ID) (facts.ReferenceSource, error) {
	if _, served := c.Surface.Kinds[api.GroupKind(id)]; !served {
		return facts.ReferenceSource{Err: c.Surface.Known(api.GroupKind(id))}, nil
	}
	live, err := c.Read(ctx, id)
	switch {
	case apierrors.IsNotFound(err):
		return facts.ReferenceSource{}, nil
	case err != nil && !c.Stops(ctx, err):
		return facts.ReferenceSource{Err: c.Explain(err, "get", id.Brief())}, nil
	case err != nil:
		return facts.ReferenceSource{}, c.Explain(err, "get", id.Brief())
	}
	return facts.ReferenceSource{Live: live}, nil
}
