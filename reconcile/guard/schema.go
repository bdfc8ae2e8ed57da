package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The codes of the guard schema.
const (
	BreaksUnseen       plan.Code = "BreaksUnseen"       // the breaking changes; no cluster shows whether there are custom resources
	BreaksUncounted    plan.Code = "BreaksUncounted"    // the breaking changes; custom resources have not been counted yet
	BreaksUncountable  plan.Code = "BreaksUncountable"  // the breaking changes, and why custom resources cannot be counted
	BreaksInUse        plan.Code = "BreaksInUse"        // the breaking changes, how many custom resources exist, an example, and the removed versions
	BreaksInUseUnknown plan.Code = "BreaksInUseUnknown" // a BreaksInUse, and why the custom resources cannot be checked
	BreaksObjects      plan.Code = "BreaksObjects"      // the breaking changes, and what custom resources would lose or why they would be refused
	BreaksNoObject     plan.Code = "BreaksNoObject"     // the breaking changes, and how many custom resources exist; all of them fit
)

// schemas holds an update that makes stored objects unreadable, or that breaks a schema in use. This covers the updates that
// Crossplane makes when a package is updated.
func schemas(s plan.Step, c plan.Case) plan.Ruling {
	if s.Action != plan.Update || s.Live == nil || !crossplane.DeclaresKind(s.ID) {
		return allowed
	}
	first, second := stored(s, c), broken(s, c)
	needs := slices.Concat(first.Needs, second.Needs)
	switch {
	case first.Answer == plan.Held, second.Reason.None():
	case second.Answer == plan.Held, first.Reason.None():
		first = second
	default:
		first = plan.Ruling{Reason: plan.Both.With(first.Reason, second.Reason)}
	}
	first.Needs = needs
	return first
}

// broken holds breaking changes of a kind that has custom resources.
func broken(s plan.Step, c plan.Case) plan.Ruling {
	if neverServed(s.Live) {
		return allowed
	}
	// Breaking changes below status do no harm, because controllers write the status again.
	breaking := slices.DeleteFunc(s.Schema().Breaking(), schema.Change.InStatus)
	if len(breaking) == 0 || crossplane.IsMRD(s.ID) && !isMade(s, c) {
		return allowed
	}
	q := plan.Question{Ask: plan.Dependents, Of: plan.CRD(s.ID.Name)}
	if crossplane.IsXRD(s.ID) {
		q.Of = s.ID // its claims count, too
	}
	a, answered := c.Seen.Answers[q]
	switch {
	case c.Seen.Offline && !answered:
		return plan.Ruling{Reason: BreaksUnseen.With(breaking), Needs: []plan.Question{q}}
	case !answered:
		r := held(BreaksUncounted.With(breaking))
		r.Needs = []plan.Question{q}
		return r
	case !a.Unknown.None():
		return held(BreaksUncountable.With(breaking, a.Unknown))
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
func isMade(s plan.Step, c plan.Case) bool {
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
