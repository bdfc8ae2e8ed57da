package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// redefines reports whether a step changes a definition that exists. This covers the updates that Crossplane makes when a package is
// updated.
func redefines(s plan.Step) bool {
	return s.Action == plan.Update && s.Live != nil && crossplane.DeclaresKind(s.ID)
}

// broken holds breaking changes of a kind that has custom resources.
func broken(s plan.Step, c draft.Case) plan.Ruling {
	if !redefines(s) || neverServed(s.Live) {
		return allowed
	}
	// Breaking changes below status do no harm, because controllers write the status again.
	breaking := slices.DeleteFunc(s.Schema().Breaking(), schema.Change.InStatus)
	if len(breaking) == 0 || crossplane.IsMRD(s.ID) && !isMade(s, c) {
		return allowed
	}
	q := question.Dependents{Of: plan.CRD(s.ID.Name)}
	if crossplane.IsXRD(s.ID) {
		q.Of = s.ID // its claims count, too
	}
	a, is := question.Get(c.Seen.Known(), q)
	switch {
	case is.Unseen:
		return noted(reason.BreaksUnseen.With(breaking))
	case is.Open:
		return asks(approval.Uncounted, approval.Amount{}, reason.BreaksUncounted.With(breaking))
	case is.Err != nil:
		return asks(approval.Uncounted, approval.Amount{}, reason.BreaksUncountable.With(breaking, reason.Of(is.Err)))
	case a.Count > 0:
		return fits(s, c, breaking, a)
	}
	return allowed
}

// neverServed reports whether a CRD was never served, because its names were refused or are not accepted yet. Then it has no
// objects, and the API server accepts every change. Once a CRD is Established, it stays so.
func neverServed(live *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		c, _ := condition.(map[string]any)
		return live.GetKind() == "CustomResourceDefinition" && c["type"] == "Established" && c["status"] == "False"
	})
}

// isMade reports whether Crossplane makes, or has made, the CRD of an MRD.
func isMade(s plan.Step, c draft.Case) bool {
	return len(s.Because) > 0 || c.Seen.Upstream.Definitions[s.ID.Name].Active
}

// leavingVersions returns the versions of a definition that are removed or no longer served.
func leavingVersions(breaking []schema.Change) []string {
	var leave []string
	for _, b := range breaking {
		if (b.Rule == schema.Removed || b.Rule == schema.Unserved) && !slices.Contains(leave, b.Version) {
			leave = append(leave, b.Version)
		}
	}
	return leave
}
