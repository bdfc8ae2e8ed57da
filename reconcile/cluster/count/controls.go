package count

import (
	"context"
	"fmt"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// controls counts the CRDs and MRDs of a package whose controller is an inactive package revision. An upgrade that stopped halfway
// leaves them behind, and the next revision cannot become their controller before the old one is removed. The count is 0 for a
// package without an active revision: nothing was installed, or a person decides on it.
func (r respondent) controls(ctx context.Context, q question.Controls) (question.Counted, error) {
	c, id := r.Counter, q.Of
	if id.Kind != crossplane.Provider {
		return question.Counted{}, nil
	}
	revisions := map[string]bool{} // revisions of this package, and whether they are active
	active := ""
	err := c.Each(ctx, api.GroupKind(crossplane.ProviderRevision("")), func(u *unstructured.Unstructured) {
		if crossplane.ProviderOf(u) != id {
			return
		}
		state, _, _ := unstructured.NestedString(u.Object, "spec", "desiredState")
		revisions[u.GetName()] = state == "Active"
		if state == "Active" {
			active = u.GetName()
		}
	})
	if err != nil || active == "" {
		return question.Counted{}, err
	}
	var t tally
	for _, kind := range []manifest.ID{plan.CRD(""), crossplane.MRD("")} {
		if _, served := c.Surface.Kinds[api.GroupKind(kind)]; !served {
			continue
		}
		objects, err := c.List(ctx, c.Surface, api.GroupKind(kind), "", "")
		if err != nil {
			return question.Counted{}, c.Explain(err, "list", api.ResourceName(c.Surface, api.GroupKind(kind)))
		}
		for _, o := range objects {
			by, controlled := crossplane.RevisionOf(o)
			if isActive, known := revisions[by]; !controlled || !known || isActive {
				continue // Kubernetes removes references to owners that are gone
			}
			is := kind
			is.Name = o.Name
			t.add(is)
			if t.Count == 1 {
				t.Example += fmt.Sprintf(" (controlled by %s; %s is active)", by, active)
			}
		}
	}
	return question.Counted(t), nil
}
