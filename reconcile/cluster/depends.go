package cluster

import (
	"context"
	"slices"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sources reads the objects that references copy fields from, with one request each.
func (c *Cluster) sources(ctx context.Context, seen facts.Observed, want render.Desired, sp spelling) (map[manifest.ID]facts.ReferenceSource, error) {
	ids := demand.SourcesOf(seen, want)
	if len(ids) == 0 {
		return nil, nil
	}
	all, err := inParallel(ctx, c.options.Concurrency, ids, func(ctx context.Context, id manifest.ID) (facts.ReferenceSource, error) {
		return c.source(ctx, sp.actual(id))
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

func (c *Cluster) source(ctx context.Context, id manifest.ID) (facts.ReferenceSource, error) {
	if _, served := c.surface.kinds[groupKind(id)]; !served {
		return facts.ReferenceSource{Err: c.surface.known(groupKind(id))}, nil
	}
	live, err := c.read(ctx, id)
	switch {
	case apierrors.IsNotFound(err):
		return facts.ReferenceSource{}, nil
	case err != nil && !c.stops(ctx, err):
		return facts.ReferenceSource{Err: c.explain(err, "get", id.Brief())}, nil
	case err != nil:
		return facts.ReferenceSource{}, c.explain(err, "get", id.Brief())
	}
	return facts.ReferenceSource{Live: live}, nil
}

// ready returns whether an object exists and is ready for its dependants. An object that cannot be read counts as not ready.
func (r respondent) ready(ctx context.Context, q question.Ready) (question.Readiness, error) {
	c, id := r.Cluster, r.actual(q.Of)
	if _, served := c.surface.kinds[groupKind(id)]; !served {
		return unready(c.surface.known(groupKind(id))), nil
	}
	live, err := c.read(ctx, id)
	switch {
	case apierrors.IsNotFound(err):
		return question.Readiness{}, nil
	case err != nil: // usually forbidden
		return unready(c.explain(err, "get", id.Brief())), nil
	case live.GetDeletionTimestamp() != nil:
		return question.Readiness{Exists: true, NotReady: reason.BeingDeleted.With()}, nil
	}
	why, err := c.whyNotReady(ctx, id, live)
	return question.Readiness{Exists: true, NotReady: why}, err
}

// unready returns the state of an object that cannot be read. Without an error, no such object exists.
func unready(err error) question.Readiness {
	if err == nil {
		return question.Readiness{}
	}
	return question.Readiness{Exists: true, NotReady: reason.Of(err)}
}

// whyNotReady returns why an object is not ready for its dependants, or no reason if it is. For Crossplane's kinds, it does not use
// the general rules of notReady: they count objects as ready that Crossplane has not reconciled yet.
func (c *Cluster) whyNotReady(ctx context.Context, id manifest.ID, live *unstructured.Unstructured) (reason.Reason, error) {
	state, _, _ := unstructured.NestedString(live.Object, "spec", "state")
	switch categories := c.surface.kinds[groupKind(id)].Categories; {
	case crossplane.IsMRD(id):
		d := crossplane.LiveDefinition{Active: state == "Active", Established: crossplane.Condition(live, "Established").Status}
		if d.Active && d.Established != metav1.ConditionTrue {
			if err := c.ask(ctx, id.Name, &d); err != nil && !apierrors.IsNotFound(err) {
				return reason.Reason{}, err
			}
		}
		if !d.Active { // an inactive definition is ready: only a policy can change that
			return reason.Reason{}, nil
		}
		return facts.WhyDefinition(d), nil
	case id == crossplane.MRAP(id.Name):
		return facts.WhyPolicy(crossplane.LivePolicyOf(live)), nil
	case crossplane.IsPackage(id):
		return facts.WhyPackage(crossplane.LivePackageOf(live)), nil
	case crossplane.IsXRD(id):
		return isTrue(live, "Established"), nil
	case slices.ContainsFunc([]string{"managed", "composite", "claim"}, func(c string) bool { return slices.Contains(categories, c) }):
		return isTrue(live, "Ready"), nil
	}
	return notReady(live), nil
}

// isTrue returns why a condition of an object is not true; no reason if it is.
func isTrue(u *unstructured.Unstructured, kind string) reason.Reason {
	switch c := crossplane.Condition(u, kind); {
	case c.Status == metav1.ConditionTrue:
		return reason.Reason{}
	case c.Message != "":
		return reason.StatusMessage.With(c.Message)
	case c.Reason != "":
		return reason.StatusMessage.With(c.Reason)
	}
	return reason.ConditionNotTrue.With(kind)
}
