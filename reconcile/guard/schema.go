package guard

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// schemas holds an update that makes stored objects unreadable or breaks a schema that is in use. This
// covers the updates that Crossplane makes when a package is updated.
func schemas(s plan.Step, c plan.Case) plan.Ruling {
	if s.Action != plan.Update || s.Live == nil || !plan.DeclaresKind(s.ID) {
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
	// What breaks below status breaks nobody: controllers write it again.
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
		return plan.Ruling{Reason: text("its schema breaks: %s; whether custom resources exist is not known without a cluster, and a pass holds it while any do", someOf(breaking)), Needs: []plan.Question{q}}
	case !answered:
		r := held(text("its schema breaks: %s; it has not been counted how many custom resources exist", someOf(breaking)))
		r.Needs = []plan.Question{q}
		return r
	case a.Unknown != "":
		return held(text("its schema breaks: %s; custom resources cannot be counted (%s), so it counts as in use", someOf(breaking), a.Unknown))
	case a.Count > 0:
		return fits(s, c, breaking, a, fmt.Sprintf("its schema breaks: %s; %s%s: change them first, or approve this%s",
			someOf(breaking), plan.Exist(a.Count, "custom resource"), plan.Example(a), plan.Beforehand(breaking)))
	}
	return allowed
}

// neverServed says of a CRD that nobody can have objects of it, and that the API server takes
// whatever changes: it was refused its names, or is about to get them. Once it is Established it
// stays so.
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

// mostBreaks is how many changes a reason names.
const mostBreaks = 3

func someOf(changes []schema.Change) string {
	var said []string
	for i, b := range changes {
		if i == mostBreaks {
			said = append(said, fmt.Sprintf("and %d more", len(changes)-i))
			break
		}
		said = append(said, b.String())
	}
	return strings.Join(said, ", ")
}
