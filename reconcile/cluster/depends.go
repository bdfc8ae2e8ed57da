package cluster

import (
	"context"
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dependencies reads the dependencies of all objects that may have to be written, with one request each. If there is nothing to
// write, it sends no request.
func (c *Cluster) dependencies(ctx context.Context, seen plan.Observed, sp spelling) (map[manifest.ID]plan.Dependency, error) {
	ids, err := seen.DependenciesOf()
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return eachOf(ctx, c, ids, sp, c.dependency)
}

// sources reads the objects that references copy fields from, with one request each.
func (c *Cluster) sources(ctx context.Context, seen plan.Observed, want render.Desired, sp spelling) (map[manifest.ID]plan.ReferenceSource, error) {
	ids := seen.SourcesOf(want)
	if len(ids) == 0 {
		return nil, nil
	}
	return eachOf(ctx, c, ids, sp, c.source)
}

// eachOf reads the objects with these IDs, which are in the commit's spelling.
func eachOf[T any](ctx context.Context, c *Cluster, ids []manifest.ID, sp spelling, read func(context.Context, manifest.ID) (T, error)) (map[manifest.ID]T, error) {
	all, err := inParallel(ctx, c.options.Concurrency, ids, func(ctx context.Context, id manifest.ID) (T, error) { return read(ctx, sp.actual(id)) })
	if err != nil {
		return nil, err
	}
	found := make(map[manifest.ID]T, len(ids))
	for i, id := range ids {
		found[id] = all[i]
	}
	return found, nil
}

func (c *Cluster) source(ctx context.Context, id manifest.ID) (plan.ReferenceSource, error) {
	if _, served := c.surface.kinds[groupKind(id)]; !served {
		return plan.ReferenceSource{Err: c.surface.known(groupKind(id))}, nil
	}
	live, err := c.read(ctx, id)
	switch {
	case apierrors.IsNotFound(err):
		return plan.ReferenceSource{}, nil
	case err != nil && !c.stops(ctx, err):
		return plan.ReferenceSource{Err: c.explain(err, "get", id.Brief())}, nil
	case err != nil:
		return plan.ReferenceSource{}, c.explain(err, "get", id.Brief())
	}
	return plan.ReferenceSource{Live: live}, nil
}

func (c *Cluster) dependency(ctx context.Context, id manifest.ID) (plan.Dependency, error) {
	if _, served := c.surface.kinds[groupKind(id)]; !served {
		if err := c.surface.known(groupKind(id)); err != nil {
			return plan.Dependency{Exists: true, NotReady: plan.ReasonOf(err)}, nil
		}
		return plan.Dependency{}, nil
	}
	live, err := c.read(ctx, id)
	switch {
	case apierrors.IsNotFound(err):
		return plan.Dependency{}, nil
	case err != nil && !c.stops(ctx, err): // usually forbidden
		return plan.Dependency{Exists: true, NotReady: plan.ReasonOf(c.explain(err, "get", id.Brief()))}, nil
	case err != nil:
		return plan.Dependency{}, c.explain(err, "get", id.Brief())
	case live.GetDeletionTimestamp() != nil:
		return plan.Dependency{Exists: true, NotReady: plan.BeingDeleted.With()}, nil
	}
	why, err := c.whyNotReady(ctx, id, live)
	return plan.Dependency{Exists: true, NotReady: why}, err
}

// whyNotReady returns why an object is not ready for its dependants, or no reason if it is. For Crossplane's kinds, it does not use
// the general rules of notReady: they count objects as ready that Crossplane has not reconciled yet.
func (c *Cluster) whyNotReady(ctx context.Context, id manifest.ID, live *unstructured.Unstructured) (plan.Reason, error) {
	state, _, _ := unstructured.NestedString(live.Object, "spec", "state")
	switch categories := c.surface.kinds[groupKind(id)].Categories; {
	case crossplane.IsMRD(id):
		d := crossplane.LiveDefinition{Active: state == "Active", Established: crossplane.Condition(live, "Established").Status}
		if d.Active && d.Established != metav1.ConditionTrue {
			if err := c.ask(ctx, id.Name, &d); err != nil && !apierrors.IsNotFound(err) {
				return plan.Reason{}, err
			}
		}
		if !d.Active { // an inactive definition is ready: only a policy can change that
			return plan.Reason{}, nil
		}
		return plan.WhyDefinition(d), nil
	case id == crossplane.MRAP(id.Name):
		return plan.WhyPolicy(crossplane.LivePolicyOf(live)), nil
	case crossplane.IsPackage(id):
		return plan.WhyPackage(crossplane.LivePackageOf(live)), nil
	case crossplane.IsXRD(id):
		return isTrue(live, "Established"), nil
	case slices.ContainsFunc([]string{"managed", "composite", "claim"}, func(c string) bool { return slices.Contains(categories, c) }):
		return isTrue(live, "Ready"), nil
	}
	return notReady(live), nil
}

// isTrue returns why a condition of an object is not true; no reason if it is.
func isTrue(u *unstructured.Unstructured, kind string) plan.Reason {
	switch c := crossplane.Condition(u, kind); {
	case c.Status == metav1.ConditionTrue:
		return plan.Reason{}
	case c.Message != "":
		return plan.StatusMessage.With(c.Message)
	case c.Reason != "":
		return plan.StatusMessage.With(c.Reason)
	}
	return plan.ConditionNotTrue.With(kind)
}
