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
	BreaksUnseen       plan.Code = "BreaksUnseen"       // the breaking changes; there is no cluster to ask for custom resources
	BreaksUncounted    plan.Code = "BreaksUncounted"    // what breaks; custom resources have not been counted yet
	BreaksUncountable  plan.Code = "BreaksUncountable"  // what breaks, and why custom resources cannot be counted
	BreaksInUse        plan.Code = "BreaksInUse"        // what breaks, how many custom resources exist, an example, and the versions that leave
	BreaksInUseUnknown plan.Code = "BreaksInUseUnknown" // a BreaksInUse, and why the custom resources cannot be looked at
	BreaksObjects      plan.Code = "BreaksObjects"      // what breaks, and what custom resources lose or are refused
	BreaksNoObject     plan.Code = "BreaksNoObject"     // the breaking changes, and how many custom resources exist; all of them fit
)

// schemas holds an update that makes stored objects unreadable or breaks a schema that is in use. This
// covers the updates that Crossplane makes when a package is updated.
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

// broken holds what breaks a kind that has custom resources.
func broken(s plan.Step, c plan.Case) plan.Ruling {
	if neverServed(s.Live) {
		return allowed
	}
	// A breaking change below status does no harm: controllers write it again.
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

// neverServed reports whether a CRD was never served: its names were refused, or are not accepted yet. It has no
// objects then, and the API server accepts every change. Once it is Established it stays so.
func neverServed(live *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		c, _ := condition.(map[string]any)
		return live.GetKind() == "CustomResourceDefinition" && c["type"] == "Established" && c["status"] == "False"
	})
}

// isMade reports whether Crossplane makes a CRD of an MRD, or has made one.
func isMade(s plan.Step, c plan.Case) bool {
	return len(s.Because) > 0 || c.Seen.Upstream.Definitions[s.ID.Name].Active
}

// leavingVersions returns the versions of a definition that leave, or that are not served any more.
func leavingVersions(breaking []schema.Change) []string {
	var leave []string
	for _, b := range breaking {
		if (b.Rule == schema.Removed || b.Rule == schema.Unserved) && !slices.Contains(leave, b.Version) {
			leave = append(leave, b.Version)
		}
	}
	return leave
}
