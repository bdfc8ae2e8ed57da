package plan

import (
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WithScope returns u with the scope of another definition if it has none.
func WithScope(u, of *unstructured.Unstructured) *unstructured.Unstructured {
	scope, found, _ := unstructured.NestedString(of.Object, "spec", "scope")
	if _, says, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "scope"); says || !found {
		return u
	}
	u = u.DeepCopy()
	_ = unstructured.SetNestedField(u.Object, scope, "spec", "scope") // without a spec, the comparison fails, too
	return u
}

// A SchemaChange is one change in the schema or the versions of a definition.
type SchemaChange = schema.Change

// A SchemaDifference holds all of them.
type SchemaDifference = schema.Difference

// Schema returns the changes that an update of a CRD, an MRD or an XRD makes for users of its kind. It is empty for other steps.
func (s Step) Schema() schema.Difference {
	if s.Difference == nil || s.Action != Update && s.Would != Update {
		return schema.Difference{}
	}
	return s.Difference()
}

// CompareSchema computes the result of Step.Schema.
func (s Step) CompareSchema() schema.Difference {
	difference := s.CompareConverted()
	if s.Vendored {
		difference, _, _ = difference.Unconverting()
	}
	return difference
}

// CompareConverted is compareSchema with the effects of a conversion that a copy of a package lacks.
func (s Step) CompareConverted() schema.Difference {
	if s.Compared != nil {
		return *s.Compared
	}
	if s.Live == nil || !crossplane.DeclaresKind(s.ID) {
		return schema.Difference{}
	}
	after, err := s.WillBe()
	if err != nil {
		return schema.Difference{} // Err holds the reason
	}
	if s.After == nil { // the update was refused, so the API server has not set defaults
		after = WithScope(after, s.Live)
	}
	return schema.Compare(s.Live, after)
}
