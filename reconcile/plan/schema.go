package plan

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A SchemaChange is one place in which an update of a definition changes what its kind takes.
type SchemaChange = schema.Change

// Schema is what an update of a CRD, an MRD or an XRD changes for those who use its kind. Of every
// other step it is nothing.
func (s Step) Schema() schema.Difference {
	if s.schema == nil || s.Action != Update && s.Would != Update {
		return schema.Difference{}
	}
	return s.schema()
}

// compareSchema is what Step.Schema answers.
func (s Step) compareSchema() schema.Difference {
	if s.Live == nil || !declaresKind(s.ID) {
		return schema.Difference{}
	}
	after, err := s.willBe()
	if err != nil {
		return schema.Difference{} // which Err says
	}
	if s.After == nil { // refused, so nothing filled in what it leaves out
		after = withScope(after, s.Live)
	}
	difference := schema.Compare(s.Live, after)
	if s.vendored {
		difference, _, _ = difference.Unconverting()
	}
	return difference
}

// declaresKind says whether an object makes the API server serve a kind.
func declaresKind(id manifest.ID) bool { return id.IsCRD() || id.IsMRD() || id.IsXRD() }

// schemas holds an update that makes stored objects unreadable or breaks a schema that is in use. This
// covers the update of a package that would do so to what is installed of it.
func schemas(s Step, c Case) Ruling {
	switch {
	case s.Action == Update && IsPackage(s.ID):
		return replaced(s, c, schemas)
	case s.Action != Update || s.Live == nil || !declaresKind(s.ID):
		return allowed
	}
	first, second := stored(s, c), broken(s, c)
	needs := slices.Concat(first.Needs, second.Needs)
	switch {
	case first.Answer == Held, second.Reason == "":
	case second.Answer == Held, first.Reason == "":
		first = second
	default:
		first = Ruling{Reason: first.Reason + "; " + second.Reason}
	}
	first.Needs = needs
	return first
}

// broken holds what breaks a kind that has custom resources.
func broken(s Step, c Case) Ruling {
	if neverServed(s.Live) {
		return allowed
	}
	// What breaks below status breaks nobody: controllers write it again.
	breaking := slices.DeleteFunc(s.Schema().Breaking(), schema.Change.InStatus)
	if len(breaking) == 0 || s.ID.IsMRD() && !isMade(s, c) {
		return allowed
	}
	q := Question{Ask: Dependents, Of: CRD(s.ID.Name)}
	if s.ID.IsXRD() {
		q.Of = s.ID // its claims count, too
	}
	a, answered := c.Seen.Answers[q]
	switch {
	case c.Seen.Offline && !answered:
		return Ruling{Reason: fmt.Sprintf("its schema breaks: %s; whether custom resources exist is not known without a cluster, and a pass holds it while any do", someOf(breaking)), Needs: []Question{q}}
	case !answered:
		r := held("its schema breaks: %s; it has not been counted how many custom resources exist", someOf(breaking))
		r.Needs = []Question{q}
		return r
	case a.Unknown != "":
		return held("its schema breaks: %s; custom resources cannot be counted (%s), so it counts as in use", someOf(breaking), a.Unknown)
	case a.Count > 0:
		return fits(s, c, breaking, a, fmt.Sprintf("its schema breaks: %s; %s%s: change them first, or approve this%s",
			someOf(breaking), exist(a.Count, "custom resource"), example(a), beforehand(breaking)))
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
func isMade(s Step, c Case) bool {
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

func exist(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun + " exists"
	}
	return plural(n, noun) + " exist"
}

func orNone(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}
