package plan

import (
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withScope returns a definition with the scope of another one where it has none.
func withScope(u, of *unstructured.Unstructured) *unstructured.Unstructured {
	scope, found, _ := unstructured.NestedString(of.Object, "spec", "scope")
	if _, says, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "scope"); says || !found {
		return u
	}
	u = u.DeepCopy()
	_ = unstructured.SetNestedField(u.Object, scope, "spec", "scope") // what is no map fails to compare, too
	return u
}

// A SchemaChange is one place in which an update of a definition changes what its kind takes.
type SchemaChange = schema.Change

// Schema returns the changes of an update of a CRD, an MRD or an XRD for users of its kind. It is empty for every other
// step.
func (s Step) Schema() schema.Difference {
	if s.schema == nil || s.Action != Update && s.Would != Update {
		return schema.Difference{}
	}
	return s.schema()
}

// compareSchema is what Step.Schema answers.
func (s Step) compareSchema() schema.Difference {
	if s.Live == nil || !crossplane.DeclaresKind(s.ID) {
		return schema.Difference{}
	}
	after, err := s.WillBe()
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
