package count

import (
	"context"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// leftovers returns an object as it is now, and as it would be without the fields that other tools left behind on it.
func (r respondent) leftovers(ctx context.Context, q question.Leftovers) (question.Cleared, error) {
	c, id := r.Counter, r.Actual(q.Of)
	live, err := c.Existing(ctx, id)
	if err != nil || live == nil {
		return question.Cleared{}, err
	}
	why, err := c.Reconcilers(ctx, map[manifest.ID]metav1.Object{id: live})
	if err != nil {
		return question.Cleared{}, err
	}
	if !why[id].None() {
		return question.Cleared{}, reason.CodedError{Reason: why[id]}
	}
	_, rest := ownership.Leftovers(live)
	if rest == nil || rest.Empty() {
		return question.Cleared{}, nil
	}
	gvr, err := c.Surface.Resource(api.GroupKind(id), api.VersionOf(live.GetAPIVersion()))
	if err != nil {
		return question.Cleared{}, err
	}
	after, err := api.Removed(ctx, c.Objects.Resource(gvr).Namespace(id.Namespace), live, rest)
	return question.Cleared{Live: live, After: after}, err
}

// applied returns an object after an apply.
func (r respondent) applied(ctx context.Context, q question.Applied) (*unstructured.Unstructured, error) {
	c, id := r.Counter, r.Actual(q.Of)
	content, err := q.Content.Content()
	if err != nil {
		return nil, err
	}
	gvr, err := c.Surface.Resource(api.GroupKind(id), api.VersionOf(content.GetAPIVersion()))
	if err != nil {
		return nil, err
	}
	return api.DryRun(ctx, c.Objects.Resource(gvr).Namespace(id.Namespace), content, true)
}
