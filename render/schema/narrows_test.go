package schema

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Two limits of one field may imply each other, and a rule may still hold with another default. Each case is paired with one that
// differs in a detail and breaks.
func TestImplied(t *testing.T) {
	const unlessObserved = `
x-kubernetes-validations: [{rule: "!('*' in self.managementPolicies || 'Create' in self.managementPolicies) || has(self.size)"}]
`
	policies := func(initial string) string {
		return unlessObserved + "properties: {size: {type: integer}, managementPolicies: {type: array, items: {type: string}" + initial + "}}"
	}
	cases := map[string]struct {
		reason  string
		was, is string // schema of the spec
		breaks  bool
	}{
		"AllOfImpliesMaxLength": {
			reason: "Only texts of up to two characters were accepted.", was: "properties: {a: {type: string, allOf: [{maxLength: 2}]}}", is: "properties: {a: {type: string, allOf: [{maxLength: 2}], maxLength: 3}}",
		},
		"AllOfAllowsMore": {
			reason: "Texts of three characters were accepted.", was: "properties: {a: {type: string, allOf: [{maxLength: 3}]}}", is: "properties: {a: {type: string, allOf: [{maxLength: 3}], maxLength: 2}}", breaks: true,
		},
		"EveryAlternativeIsShort": {
			reason: "Every alternative allows only one character.", was: "properties: {a: {type: string, anyOf: [{enum: [b]}, {maxLength: 1}]}}", is: "properties: {a: {type: string, maxLength: 1}}",
		},
		"OneAlternativeIsLong": {
			reason: "One alternative allows two characters.", was: "properties: {a: {type: string, anyOf: [{enum: [bb]}, {maxLength: 1}]}}", is: "properties: {a: {type: string, maxLength: 1}}", breaks: true,
		},
		"ExactlyOneThatWasDemanded": {
			reason: "The field was already required.", was: "{required: [a], properties: {a: {type: string}}}", is: "{required: [a], oneOf: [{required: [a]}], properties: {a: {type: string}}}",
		},
		"ExactlyOneOfTwo": {
			reason: "Both fields may be set, which oneOf refuses.", was: "{required: [a], properties: {a: {type: string}, b: {type: string}}}", is: "{required: [a], oneOf: [{required: [a]}, {required: [b]}], properties: {a: {type: string}, b: {type: string}}}", breaks: true,
		},
		"RequiredByAllOf": {
			reason: "The field was already required by allOf.", was: "{allOf: [{required: [a]}], properties: {a: {type: string}}}", is: "{required: [a], properties: {a: {type: string}}}",
		},
		"RequiredByOneAlternative": {
			reason: "The other alternative does not require the field.", was: "{anyOf: [{required: [a]}, {required: [b]}], properties: {a: {type: string}, b: {type: string}}}", is: "{required: [a], properties: {a: {type: string}, b: {type: string}}}", breaks: true,
		},
		"FilledInCounts": {
			reason: "A field with a default is always present.", was: "properties: {p: {type: object, properties: {a: {type: string, default: x}, b: {type: string}}}}",
			is: "properties: {p: {type: object, minProperties: 1, properties: {a: {type: string, default: x}, b: {type: string}}}}",
		},
		"OneFilledInIsNotTwo": {
			reason: "The field without a default may be missing.", was: "properties: {p: {type: object, properties: {a: {type: string, default: x}, b: {type: string}}}}",
			is: "properties: {p: {type: object, minProperties: 2, properties: {a: {type: string, default: x}, b: {type: string}}}}", breaks: true,
		},
		"ItemFilledIn": {
			reason: "A null item was refused before.", was: "properties: {l: {type: array, x-kubernetes-list-type: set, items: {type: string}}}", is: "properties: {l: {type: array, x-kubernetes-list-type: set, items: {type: string, default: x}}}",
		},
		"ItemNotFilledInAnyMore": {
			reason: "A null item was replaced.", was: "properties: {l: {type: array, items: {type: string, default: x}}}", is: "properties: {l: {type: array, items: {type: string}}}", breaks: true,
		},
		"ItemThatMayBeNull": {
			reason: "A null item is accepted.", was: "properties: {l: {type: array, items: {type: string, default: x}}}", is: "properties: {l: {type: array, items: {type: string, nullable: true}}}",
		},
		"PoliciesNeedLess":   {reason: "An object without policies has no further required fields.", was: policies(`, default: ["*"]`), is: policies(", default: [Observe]")},
		"PoliciesWithout":    {reason: "The rule applies only where size is set, as before.", was: policies(`, default: ["*"]`), is: policies("")},
		"PoliciesNeedMore":   {reason: "size was not required of an object without policies.", was: policies(", default: [Observe]"), is: policies(`, default: ["*"]`), breaks: true},
		"PoliciesMayBeUnset": {reason: "The rule cannot be evaluated without the list.", was: policies(", default: [Observe]"), is: policies(""), breaks: true},
		"PoliciesReadTwice": {
			reason: "The rest of the rule also reads the list.", breaks: true,
			was: "x-kubernetes-validations: [{rule: \"!('*' in self.l) || 'x' in self.l\"}]\nproperties: {l: {type: array, items: {type: string}, default: ['*', x]}}",
			is:  "x-kubernetes-validations: [{rule: \"!('*' in self.l) || 'x' in self.l\"}]\nproperties: {l: {type: array, items: {type: string}, default: ['*']}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Compare(withSpec(t, tc.was), withSpec(t, tc.is))
			if breaks := len(d.Breaking()) > 0; breaks != tc.breaks {
				t.Errorf("%s\nbreaks: %t, want %t: %v", tc.reason, breaks, tc.breaks, d.Changes)
			}
		})
	}
}

// withSpec returns a CRD with a schema of its spec.
func withSpec(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var spec map[string]any
	j, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(j, &spec); err != nil {
		t.Fatal(err)
	}
	spec["type"] = "object"
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "as.example.org"},
		"spec": map[string]any{"group": "example.org", "scope": "Cluster", "names": map[string]any{"kind": "A", "plural": "as"}, "versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": spec}}},
		}}},
	}}
	return u
}
