package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A ruleCase is one way in which a definition can change.
type ruleCase struct {
	reason string
	kind   string // of the object, where it is no CRD
	// Edits of a definition with the versions v1 and v2; v2 is the storage version. nil is no edit.
	before, after func(crd map[string]any)
	want          []Change
	added         []Change
	words         bool
}

// definition is a CRD as people write them.
const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: buckets.example.org
  annotations: {controller-gen.kubebuilder.io/version: v0.19.0}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Bucket, plural: buckets, singular: bucket, categories: [managed]}
  versions:
  - name: v1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object}}
  - name: v2
    served: true
    storage: true
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.region}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [region]
            properties:
              region: {type: string, description: Where it is., enum: [north, south], default: north}
              size: {type: integer, minimum: 1, maximum: 9}
              name: {type: string, pattern: "^a", minLength: 1, maxLength: 9}
              note: {type: string, nullable: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              rules:
                type: array
                minItems: 1
                maxItems: 9
                x-kubernetes-list-type: atomic
                items:
                  type: object
                  properties: {port: {type: integer}, host: {type: string}}
              tags: {type: object, additionalProperties: {type: string}}
            x-kubernetes-validations:
            - {rule: self.size < 8, message: too large}
`

// at is what is at a path below a map; numbers are of lists.
func at(v any, path ...any) map[string]any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(map[string]any)[step]
		case int:
			v = v.([]any)[step]
		}
	}
	return v.(map[string]any)
}

// field is the schema of a field of the spec of v2.
func field(crd map[string]any, path ...any) map[string]any {
	return at(crd, append([]any{"spec", "versions", 1, "schema", "openAPIV3Schema", "properties", "spec"}, path...)...)
}

// put sets a keyword of a field, and drops it where it is nil.
func put(keyword string, value any, path ...any) func(map[string]any) {
	return func(crd map[string]any) {
		if value == nil {
			delete(field(crd, path...), keyword)
			return
		}
		field(crd, path...)[keyword] = value
	}
}

func ruleCases() map[string]ruleCase {
	v2 := func(rule Rule, path, from, to string) []Change {
		return []Change{{Rule: rule, Version: "v2", Path: path, From: from, To: to, Breaking: true}}
	}
	fine := func(changes []Change) []Change {
		changes[0].Breaking = false
		return changes
	}
	version := func(i int, key string, value any) func(map[string]any) {
		return func(crd map[string]any) { at(crd, "spec", "versions", i)[key] = value }
	}
	names := func(key string, value any) func(map[string]any) {
		return func(crd map[string]any) { at(crd, "spec", "names")[key] = value }
	}
	both := func(edits ...func(map[string]any)) func(map[string]any) {
		return func(crd map[string]any) {
			for _, edit := range edits {
				edit(crd)
			}
		}
	}
	moved := both(version(0, "storage", true), version(1, "storage", false))
	// alike has v1 take what v2 takes, save for an edit of its spec.
	alike := func(edit func(spec map[string]any)) func(map[string]any) {
		return func(crd map[string]any) {
			copied := (&unstructured.Unstructured{Object: at(crd, "spec", "versions", 1, "schema")}).DeepCopy().Object
			at(crd, "spec", "versions", 0)["schema"] = copied
			if edit != nil {
				edit(at(copied, "openAPIV3Schema", "properties", "spec"))
			}
		}
	}
	list := func(spec map[string]any) { delete(at(spec, "properties", "rules", "items", "properties"), "port") }
	keeping := func(spec map[string]any) {
		spec["properties"] = map[string]any{}
		spec["x-kubernetes-preserve-unknown-fields"] = true
	}
	statusOf := func(i int) func(map[string]any) {
		return func(crd map[string]any) {
			at(crd, "spec", "versions", i, "schema", "openAPIV3Schema", "properties")["status"] = map[string]any{"type": "object"}
		}
	}
	third := func(crd map[string]any) {
		spec := at(crd, "spec")
		spec["versions"] = append(spec["versions"].([]any), map[string]any{
			"name": "v3", "served": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
		})
	}
	// fourth adds a version that takes what v2 takes, save for an edit of its spec.
	fourth := func(edit func(spec map[string]any)) func(map[string]any) {
		return func(crd map[string]any) {
			spec := at(crd, "spec")
			copied := (&unstructured.Unstructured{Object: at(crd, "spec", "versions", 1)}).DeepCopy().Object
			copied["name"], copied["storage"] = "v4", false
			if edit != nil {
				edit(at(copied, "schema", "openAPIV3Schema", "properties", "spec"))
			}
			spec["versions"] = append(spec["versions"].([]any), copied)
		}
	}
	small := []any{map[string]any{"maximum": int64(3)}}
	smallOrLarge := []any{map[string]any{"maximum": int64(3)}, map[string]any{"minimum": int64(7)}}
	scaled := func(path string) any {
		return map[string]any{"status": map[string]any{}, "scale": map[string]any{"specReplicasPath": path, "statusReplicasPath": ".status.size"}}
	}
	referenceable := func(i int) func(map[string]any) {
		return func(crd map[string]any) {
			for v := range 2 {
				delete(at(crd, "spec", "versions", v), "storage")
				at(crd, "spec", "versions", v)["referenceable"] = v == i
			}
		}
	}
	return map[string]ruleCase{
		"Same": {reason: "Nothing changed."},
		"Generator": {
			reason: "A newer generator wrote the same CRD.", words: true,
			after: func(crd map[string]any) {
				at(crd, "metadata", "annotations")["controller-gen.kubebuilder.io/version"] = "v0.20.0"
			},
		},
		"Description": {reason: "Words are for people.", after: put("description", "Elsewhere.", "properties", "region"), words: true},
		"FieldAdded": {
			reason: "It is optional.", after: put("new", map[string]any{"type": "string"}, "properties"),
			added: []Change{{Rule: "field", Version: "v2", Path: "spec.new"}},
		},
		"VersionAdded": {
			reason: "It takes what the storage version takes.", after: fourth(nil), added: []Change{{Rule: "version", Version: "v4"}},
		},
		"VersionAddedUnserved": {
			reason: "No object can be written in it.", after: both(third, version(2, "served", false)), added: []Change{{Rule: "version", Version: "v3"}},
		},
		"VersionAddedByWebhook": {
			reason: "The webhook converts.", after: both(third, func(crd map[string]any) {
				at(crd, "spec")["conversion"] = map[string]any{"strategy": "Webhook"}
			}),
			added: []Change{{Rule: "version", Version: "v3"}},
		},
		"VersionAddedWithLess": {
			reason: "v3 has no spec.", after: third, added: []Change{{Rule: "version", Version: "v3"}},
			want: []Change{{
				Rule: Unshared, Version: "v3", Path: "spec", Breaking: true,
				Why: "is only in v2, in which objects are stored: an update in v3 loses it",
			}},
		},
		"VersionAddedWithMore": {
			reason: "What is written in v4 is not stored.", added: []Change{{Rule: "version", Version: "v4"}},
			after: fourth(func(spec map[string]any) { at(spec, "properties")["new"] = map[string]any{"type": "string"} }),
			want: []Change{{
				Rule: Unshared, Version: "v4", Path: "spec.new", Breaking: true,
				Why: "is not in v2, in which objects are stored: it is lost at the next write",
			}},
		},
		"VersionAddedWithOtherType": {
			reason: "Each refuses what the other one takes, which is said once.", added: []Change{{Rule: "version", Version: "v4"}},
			after: fourth(func(spec map[string]any) {
				at(spec, "properties")["note"] = map[string]any{"type": "integer", "nullable": true}
			}),
			want: []Change{{
				Rule: Unshared, Version: "v4", Path: "spec.note", Breaking: true,
				Why: `is not as in v2, in which objects are stored: type was "string" and is "integer"`,
			}},
		},
		"VersionServed": {
			reason: "It was declared, and no object could be written in it.", before: both(third, version(2, "served", false)), after: third,
			want: []Change{{
				Rule: Unshared, Version: "v3", Path: "spec", Breaking: true,
				Why: "is only in v2, in which objects are stored: an update in v3 loses it",
			}},
		},
		"VersionAddedToStore": {
			reason: "v4 takes all that v2 takes, and an update in v2 drops what only v4 has.", added: []Change{{Rule: "version", Version: "v4"}},
			after: both(fourth(func(spec map[string]any) { at(spec, "properties")["new"] = map[string]any{"type": "string"} }), func(crd map[string]any) {
				at(crd, "spec", "versions", 1)["storage"], at(crd, "spec", "versions", 2)["storage"] = false, true
				at(crd, "spec", "versions", 0)["served"] = false
			}),
			before: version(0, "served", false),
			want: []Change{{Rule: Storage, From: "v2", To: "v4"}, {
				Rule: Unshared, Version: "v2", Path: "spec.new", Breaking: true,
				Why: "is only in v4, in which objects are stored: an update in v2 loses it",
			}},
		},
		"FieldRemoved": {reason: "Its content is dropped.", after: put("note", nil, "properties"), want: v2(Field, "spec.note", "", "")},
		"FieldRemovedInList": {
			reason: "So it is in every item.", after: put("host", nil, "properties", "rules", "items", "properties"),
			want: v2(Field, "spec.rules[].host", "", ""),
		},
		"TreeRemoved": {
			reason: "One word is enough for all that is below.", after: put("rules", nil, "properties"),
			want: v2(Field, "spec.rules", "", ""),
		},
		"Type": {
			reason: "No value fits both.", before: put("x-kubernetes-validations", nil), after: both(put("x-kubernetes-validations", nil), put("type", "string", "properties", "size")),
			want: v2("type", "spec.size", `"integer"`, `"string"`),
		},
		"TypeInMap":      {reason: "Nor here.", after: put("type", "integer", "properties", "tags", "additionalProperties"), want: v2("type", "spec.tags.*", `"string"`, `"integer"`)},
		"Required":       {reason: "Objects without it are refused.", after: put("required", []any{"region", "size"}), want: v2(Required, "spec.size", "", "")},
		"NotRequired":    {reason: "It may still be given.", after: put("required", nil), want: fine(v2(Required, "spec.region", "", ""))},
		"EnumNarrowed":   {reason: "south is refused.", after: put("enum", []any{"north"}, "properties", "region"), want: v2("enum", "spec.region", `["north","south"]`, `["north"]`)},
		"EnumWidened":    {reason: "Allowed values stay allowed.", after: put("enum", []any{"north", "south", "west"}, "properties", "region"), want: fine(v2("enum", "spec.region", `["north","south"]`, `["north","south","west"]`))},
		"EnumAdded":      {reason: "Anything was allowed.", after: put("enum", []any{"a"}, "properties", "name"), want: v2("enum", "spec.name", "", `["a"]`)},
		"MinimumRaised":  {reason: "1 is refused.", after: put("minimum", int64(2), "properties", "size"), want: v2("minimum", "spec.size", "1", "2")},
		"MinimumLowered": {reason: "More is allowed.", after: put("minimum", int64(0), "properties", "size"), want: fine(v2("minimum", "spec.size", "1", "0"))},
		"MaximumLowered": {reason: "9 is refused.", after: put("maximum", int64(8), "properties", "size"), want: v2("maximum", "spec.size", "9", "8")},
		"MinLength":      {reason: "a is refused.", after: put("minLength", int64(2), "properties", "name"), want: v2("minLength", "spec.name", "1", "2")},
		"MaxLength":      {reason: "Long names are refused.", after: put("maxLength", int64(8), "properties", "name"), want: v2("maxLength", "spec.name", "9", "8")},
		"MaxLengthAdded": {reason: "Any length was fine.", after: put("maxLength", int64(8), "properties", "note"), want: v2("maxLength", "spec.note", "", "8")},
		"MinItems":       {reason: "One rule is refused.", after: put("minItems", int64(2), "properties", "rules"), want: v2("minItems", "spec.rules", "1", "2")},
		"MaxItems":       {reason: "Nine rules are refused.", after: put("maxItems", int64(8), "properties", "rules"), want: v2("maxItems", "spec.rules", "9", "8")},
		"MaxProperties":  {reason: "Any number was fine.", after: put("maxProperties", int64(8), "properties", "tags"), want: v2("maxProperties", "spec.tags", "", "8")},
		"MinProperties":  {reason: "None was fine.", after: put("minProperties", int64(1), "properties", "tags"), want: v2("minProperties", "spec.tags", "", "1")},
		"PatternChanged": {reason: "ab may be refused.", after: put("pattern", "^b", "properties", "name"), want: v2("pattern", "spec.name", `"^a"`, `"^b"`)},
		"PatternAdded":   {reason: "Anything was fine.", after: put("pattern", "^b", "properties", "note"), want: v2("pattern", "spec.note", "", `"^b"`)},
		"PatternRemoved": {reason: "All is fine.", after: put("pattern", nil, "properties", "name"), want: fine(v2("pattern", "spec.name", `"^a"`, ""))},
		"DefaultChanged": {reason: "Users that left it out get another region.", after: put("default", "south", "properties", "region"), want: fine(v2("default", "spec.region", `"north"`, `"south"`))},
		"DefaultAdded":   {reason: "Users that left it out get a name.", after: put("default", "a", "properties", "name"), want: fine(v2("default", "spec.name", "", `"a"`))},
		"DefaultRemoved": {
			reason: "The field is required, so whoever left it out is refused.", after: put("default", nil, "properties", "region"),
			want: append(fine(v2("default", "spec.region", `"north"`, "")), v2(Required, "spec.region", "", "")...),
		},
		"NullRefused":    {reason: "Nulls are dropped or refused.", after: put("nullable", nil, "properties", "note"), want: v2("nullable", "spec.note", "true", "")},
		"NullAllowed":    {reason: "It is optional.", after: put("nullable", true, "properties", "name"), want: fine(v2("nullable", "spec.name", "", "true"))},
		"KeepsNoUnknown": {reason: "crdify does not know it, and what is in it is dropped.", after: put("x-kubernetes-preserve-unknown-fields", nil, "properties", "free"), want: v2("x-kubernetes-preserve-unknown-fields", "spec.free", "true", "")},
		"KeepsUnknown":   {reason: "More is kept.", after: put("x-kubernetes-preserve-unknown-fields", true, "properties", "tags"), want: fine(v2("x-kubernetes-preserve-unknown-fields", "spec.tags", "", "true"))},
		"ListType":       {reason: "Appliers merge otherwise.", after: put("x-kubernetes-list-type", "set", "properties", "rules"), want: v2("x-kubernetes-list-type", "spec.rules", `"atomic"`, `"set"`)},
		"FormatAdded":    {reason: "A text that is no date is refused.", after: put("format", "date", "properties", "note"), want: v2("format", "spec.note", "", `"date"`)},
		"FormatRemoved":  {reason: "All is fine.", before: put("format", "date", "properties", "note"), want: fine(v2("format", "spec.note", `"date"`, ""))},
		"ValidationAdded": {
			reason: "crdify does not know rules in CEL.",
			after:  put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8"}, map[string]any{"rule": "self.name != ''"}}),
			want:   v2(Validation, "spec", "", "self.name != ''"), words: true,
		},
		"ValidationRemoved": {
			reason: "Refused values are accepted.", after: put("x-kubernetes-validations", []any{}), want: fine(v2(Validation, "spec", "self.size < 8", "")), words: true,
		},
		"ValidationMessage": {reason: "The rule is the same.", after: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8", "message": "no"}}), words: true},
		"Immutable": {
			reason: "Users that change it are refused.",
			after:  put("x-kubernetes-validations", []any{map[string]any{"rule": "self == oldSelf"}}, "properties", "region"),
			want:   v2(Immutable, "spec.region", "", "self == oldSelf"), words: true,
		},
		// Changes that neither drop nor refuse anything.
		"RequiredWithDefault": {
			reason: "The API server fills it in.", before: put("default", "a", "properties", "name"), after: both(put("default", "a", "properties", "name"), put("required", []any{"region", "name"})),
			want: fine(v2(Required, "spec.name", "", `"a"`)),
		},
		"DefaultThatARuleReads": {
			reason: "What the rule demands depends on it.", before: put("x-kubernetes-validations", []any{map[string]any{"rule": "has(self.name) != has(self.note)"}}),
			after: both(put("x-kubernetes-validations", []any{map[string]any{"rule": "has(self.name) != has(self.note)"}}), put("default", "a", "properties", "name")),
			want:  v2(Default, "spec.name", "", `"a"`),
		},
		"ListBecomesAtomic": {reason: "A list without a type is atomic.", before: put("x-kubernetes-list-type", nil, "properties", "rules"), after: nil, want: fine(v2("x-kubernetes-list-type", "spec.rules", "", `"atomic"`))},
		"SetBecomesList":    {reason: "Fewer lists are refused.", before: put("x-kubernetes-list-type", "set", "properties", "rules"), after: put("x-kubernetes-list-type", nil, "properties", "rules"), want: fine(v2("x-kubernetes-list-type", "spec.rules", `"set"`, ""))},
		"MapBecomesAtomic":  {reason: "No object is refused.", after: put("x-kubernetes-map-type", "atomic", "properties", "tags"), want: fine(v2("x-kubernetes-map-type", "spec.tags", "", `"atomic"`))},
		"MapIsGranular":     {reason: "A map without a type is granular.", after: put("x-kubernetes-map-type", "granular", "properties", "tags"), want: fine(v2("x-kubernetes-map-type", "spec.tags", "", `"granular"`))},
		"EnumRemoved":       {reason: "Any value is taken.", after: put("enum", nil, "properties", "region"), want: fine(v2("enum", "spec.region", `["north","south"]`, ""))},
		"IntegerBecomesNumber": {
			reason: "Every integer is a number.", before: put("x-kubernetes-validations", nil), after: both(put("x-kubernetes-validations", nil), put("type", "number", "properties", "size")),
			want: fine(v2("type", "spec.size", `"integer"`, `"number"`)),
		},
		"NumberBecomesInteger": {
			reason: "0.5 is no integer.", before: put("type", "number", "properties", "name"), after: put("type", "integer", "properties", "name"),
			want: v2("type", "spec.name", `"number"`, `"integer"`),
		},
		"IntegerBecomesIntOrString": {
			reason: "Integers are taken as before.", before: put("ports", map[string]any{"type": "integer"}, "properties"),
			after: put("ports", map[string]any{"x-kubernetes-int-or-string": true, "anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}}, "properties"),
			want: []Change{
				{Rule: "anyOf", Version: "v2", Path: "spec.ports", To: `[{"type":"integer"},{"type":"string"}]`},
				{Rule: "type", Version: "v2", Path: "spec.ports", From: `"integer"`},
				{Rule: "x-kubernetes-int-or-string", Version: "v2", Path: "spec.ports", To: "true"},
			},
		},
		"IntOrStringBecomesInteger": {
			reason: "Strings are refused.", before: put("ports", map[string]any{"x-kubernetes-int-or-string": true}, "properties"),
			after: put("ports", map[string]any{"type": "integer"}, "properties"),
			want: []Change{
				{Rule: "type", Version: "v2", Path: "spec.ports", To: `"integer"`, Breaking: true},
				{Rule: "x-kubernetes-int-or-string", Version: "v2", Path: "spec.ports", From: "true"},
			},
		},
		"FormatWidened":     {reason: "No number is refused for its format.", before: put("format", "int32", "properties", "size"), after: put("format", "int64", "properties", "size"), want: fine(v2("format", "spec.size", `"int32"`, `"int64"`))},
		"FormatNarrowed":    {reason: "Of a number with limits, 2147483648 is refused.", before: put("maximum", nil, "properties", "size"), after: both(put("maximum", nil, "properties", "size"), put("format", "int32", "properties", "size")), want: v2("format", "spec.size", "", `"int32"`)},
		"FormatNotEnforced": {reason: "The API server does not know it.", after: put("format", "arn", "properties", "note"), want: fine(v2("format", "spec.note", "", `"arn"`))},
		"NoMinLength":       {reason: "No text is shorter.", after: put("minLength", int64(0), "properties", "note"), want: fine(v2("minLength", "spec.note", "", "0"))},
		"NoMinItems":        {reason: "No list is shorter.", before: put("minItems", nil, "properties", "rules"), after: put("minItems", int64(0), "properties", "rules"), want: fine(v2("minItems", "spec.rules", "", "0"))},
		"MultipleDivides": {
			reason: "Every multiple of 10 is one of 5.", before: put("multipleOf", int64(10), "properties", "size"), after: put("multipleOf", int64(5), "properties", "size"),
			want: fine(v2("multipleOf", "spec.size", "10", "5")),
		},
		"MultipleGrows": {
			reason: "5 is refused.", before: put("multipleOf", int64(5), "properties", "size"), after: put("multipleOf", int64(10), "properties", "size"),
			want: v2("multipleOf", "spec.size", "5", "10"),
		},
		"ExclusiveOfIntegers": {
			reason: "More than 0 is at least 1.", after: both(put("minimum", int64(0), "properties", "size"), put("exclusiveMinimum", true, "properties", "size")),
			want: append(fine(v2("exclusiveMinimum", "spec.size", "", "true")), fine(v2("minimum", "spec.size", "1", "0"))...),
		},
		"AnyOfGains":     {reason: "One more is taken.", before: put("anyOf", small, "properties", "size"), after: put("anyOf", smallOrLarge, "properties", "size"), want: fine(v2("anyOf", "spec.size", asJSON(small), asJSON(smallOrLarge)))},
		"AnyOfLoses":     {reason: "8 is refused.", before: put("anyOf", smallOrLarge, "properties", "size"), after: put("anyOf", small, "properties", "size"), want: v2("anyOf", "spec.size", asJSON(smallOrLarge), asJSON(small))},
		"AnyOfGoes":      {reason: "Nothing is refused any more.", before: put("anyOf", small, "properties", "size"), want: fine(v2("anyOf", "spec.size", asJSON(small), ""))},
		"AllOfLoses":     {reason: "Less is demanded.", before: put("allOf", smallOrLarge, "properties", "size"), after: put("allOf", small, "properties", "size"), want: fine(v2("allOf", "spec.size", asJSON(smallOrLarge), asJSON(small)))},
		"AllOfGains":     {reason: "More is demanded.", before: put("allOf", small, "properties", "size"), after: put("allOf", smallOrLarge, "properties", "size"), want: v2("allOf", "spec.size", asJSON(small), asJSON(smallOrLarge))},
		"OneOfGains":     {reason: "A value of both is refused.", before: put("oneOf", small, "properties", "size"), after: put("oneOf", smallOrLarge, "properties", "size"), want: v2("oneOf", "spec.size", asJSON(small), asJSON(smallOrLarge))},
		"OneOfLoses":     {reason: "8 is refused.", before: put("oneOf", smallOrLarge, "properties", "size"), after: put("oneOf", small, "properties", "size"), want: v2("oneOf", "spec.size", asJSON(smallOrLarge), asJSON(small))},
		"NotRefusesLess": {reason: "What is refused now was.", before: put("not", map[string]any{"maximum": int64(3)}, "properties", "size"), after: put("not", map[string]any{"maximum": int64(2)}, "properties", "size"), want: fine(v2("not", "spec.size", `{"maximum":3}`, `{"maximum":2}`))},
		"ValidationSpaced": {
			reason: "White space and comments mean nothing.", words: true,
			after: put("x-kubernetes-validations", []any{map[string]any{"rule": " self.size<8 // small\n"}}),
		},
		"ValidationSpacedInText": {
			reason: "Within a text it does.", before: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.name != 'a b'"}}), words: true,
			after: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.name != 'a  b'"}}),
			want: []Change{
				{Rule: Validation, Version: "v2", Path: "spec", From: "self.name != 'a b'"},
				{Rule: Validation, Version: "v2", Path: "spec", To: "self.name != 'a  b'", Breaking: true},
			},
		},
		"StructBecomesMap": {
			reason: "A map of text takes every field of text.", before: put("tags", map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}}}, "properties"),
			want: fine(v2("additionalProperties", "spec.tags", "", `{"type":"string"}`)),
		},
		"StructBecomesMapOfAnother": {
			reason: "A number is refused.", before: put("tags", map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "integer"}}}, "properties"),
			want: append(fine(v2("additionalProperties", "spec.tags", "", `{"type":"string"}`)), v2("type", "spec.tags.a", `"integer"`, `"string"`)...),
		},
		"FieldRemovedAndKept": {
			reason: "Unknown fields are kept there.", before: put("properties", map[string]any{"a": map[string]any{"type": "string"}}, "properties", "free"),
			want: fine(v2(Field, "spec.free.a", "", "")),
		},

		// Changes that are easily missed.
		"FieldAddedAndTyped": {
			reason: "It held anything.", after: put("properties", map[string]any{"a": map[string]any{"type": "string"}}, "properties", "free"),
			want: []Change{
				{Rule: "nullable", Version: "v2", Path: "spec.free.a", From: "true", Breaking: true},
				{Rule: "type", Version: "v2", Path: "spec.free.a", To: `"string"`, Breaking: true},
			},
		},
		"StatusAdded": {reason: "Writers of the object no longer write its status.", before: version(1, "subresources", nil), want: v2(Subresource, "", "", "status")},
		"ScaleMoved": {
			reason: "What scales it writes elsewhere.", before: version(1, "subresources", scaled(".spec.size")), after: version(1, "subresources", scaled(".spec.count")),
			want: v2(Scale, "specReplicasPath", `".spec.size"`, `".spec.count"`),
		},
		"ValidationThatDoesNotCompile": {
			reason: "The API server refuses the CRD.", words: true,
			after: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8"}, map[string]any{"rule": "self.sise > 0"}}),
			want: []Change{
				{Rule: Refused, Version: "v2", Path: "spec", Breaking: true, Why: "has a rule that the API server refuses: compilation failed: ERROR: <input>:1:5: undefined field 'sise'"},
				{Rule: Validation, Version: "v2", Path: "spec", To: "self.sise > 0", Breaking: true},
			},
		},
		"ValidationThatCostsTooMuch": {
			reason: "Every rule has a budget.", words: true,
			after: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.all(a, self.all(b, self.all(c, a == b || b != c)))"}}, "properties", "tags"),
			want: []Change{
				{Rule: Refused, Version: "v2", Path: "spec.tags", Breaking: true, Why: "has a rule that the API server refuses: Forbidden: estimated rule cost exceeds budget by factor of more than 100x"},
				{Rule: Validation, Version: "v2", Path: "spec.tags", To: "self.all(a, self.all(b, self.all(c, a == b || b != c)))", Breaking: true},
			},
		},
		"RuleReadsWhatIsGone": {
			reason: "The API server refuses the CRD.", after: put("size", nil, "properties"),
			want: []Change{
				{Rule: Refused, Version: "v2", Path: "spec", Breaking: true, Why: "has a rule that the API server refuses: compilation failed: ERROR: <input>:1:5: undefined field 'size'"},
				{Rule: Field, Version: "v2", Path: "spec.size", Breaking: true},
			},
		},
		"Unreadable": {reason: "Nothing is known of it, so it counts.", after: put("maxLength", "long", "properties", "name"), want: v2("maxLength", "spec.name", "9", `"long"`)},
		"Scope": {
			reason: "No object of the one fits the other.", after: func(crd map[string]any) { at(crd, "spec")["scope"] = "Cluster" },
			want: []Change{{Rule: Scope, From: `"Namespaced"`, To: `"Cluster"`, Breaking: true}},
		},
		"Kind":      {reason: "The API server refuses that.", after: names("kind", "Pail"), want: []Change{{Rule: Names, Path: "names.kind", From: `"Bucket"`, To: `"Pail"`, Breaking: true}}},
		"ShortName": {reason: "Descriptions may change.", after: names("shortNames", []any{"b"}), want: []Change{{Rule: Names, Path: "names.shortNames", To: `["b"]`}}},
		"ShortNameOfDefinition": {
			reason: "Nothing of the names of an MRD can change.", kind: "ManagedResourceDefinition", after: names("shortNames", []any{"b"}),
			want: []Change{{Rule: Names, Path: "names.shortNames", To: `["b"]`, Breaking: true}},
		},
		"VersionRemoved": {
			reason: "Its users are not affected.",
			after:  func(crd map[string]any) { at(crd, "spec")["versions"] = at(crd, "spec")["versions"].([]any)[1:] },
			want:   []Change{{Rule: Removed, Version: "v1", Breaking: true}},
		},
		"VersionUnserved":   {reason: "Its users are not affected.", after: version(0, "served", false), want: []Change{{Rule: Unserved, Version: "v1", Breaking: true}}},
		"VersionDeprecated": {reason: "It works as it did.", after: version(0, "deprecated", true), want: []Change{{Rule: Deprecated, Version: "v1"}}},
		"StorageMoved": {
			reason: "Nothing converts what is stored, and v1 has no spec.", after: moved,
			want: []Change{{Rule: Storage, From: "v2", To: "v1", Breaking: true}, {
				Rule: Unconverted, Version: "v2", Path: "spec", Breaking: true,
				Why: "is not in v1, in which objects are stored: it is lost at the next write",
			}},
		},
		"StorageMovedToEqual": {
			reason: "v1 holds all that v2 does.", before: alike(nil), after: both(alike(nil), moved),
			want: []Change{{Rule: Storage, From: "v2", To: "v1"}},
		},
		"StorageMovedToWider": {
			reason: "v1 takes more, fills in a default, and merges lists otherwise.",
			before: alike(nil), after: both(alike(func(spec map[string]any) {
				properties := at(spec, "properties")
				properties["new"] = map[string]any{"type": "string"}
				at(properties, "region")["enum"] = []any{"north", "south", "west"}
				at(properties, "name")["default"] = "a"
				at(properties, "rules")["x-kubernetes-list-type"] = "set"
			}), moved),
			want: []Change{
				{Rule: Storage, From: "v2", To: "v1"},
				{Rule: "default", Version: "v1", Path: "spec.name", To: `"a"`},
				{Rule: "enum", Version: "v1", Path: "spec.region", From: `["north","south"]`, To: `["north","south","west"]`},
				{Rule: "x-kubernetes-list-type", Version: "v1", Path: "spec.rules", From: `"atomic"`, To: `"set"`, Breaking: true},
			},
			added: []Change{{Rule: "field", Version: "v1", Path: "spec.new"}},
		},
		"StorageMovedToListOfObjects": {
			reason: "As providers do: what was a list of one becomes an object.",
			before: alike(list), after: both(alike(list), moved),
			want: []Change{{Rule: Storage, From: "v2", To: "v1", Breaking: true}, {
				Rule: Unconverted, Version: "v2", Path: "spec.rules[].port", Breaking: true,
				Why: "is not in v1, in which objects are stored: it is lost at the next write",
			}},
		},
		"StorageMovedByWebhook": {
			reason: "The webhook converts what is stored.", after: both(moved, func(crd map[string]any) {
				at(crd, "spec")["conversion"] = map[string]any{"strategy": "Webhook"}
			}),
			want: []Change{{Rule: Storage, From: "v2", To: "v1"}},
		},
		"StorageMovedAndKept": {
			reason: "v1 keeps what it does not know.", before: alike(keeping), after: both(alike(keeping), moved),
			want: []Change{{Rule: Storage, From: "v2", To: "v1"}},
		},
		"StorageMovedBelowStatus": {
			reason: "A controller writes the status again.",
			before: both(alike(nil), statusOf(1)), after: both(alike(nil), statusOf(1), moved),
			want: []Change{{Rule: Storage, From: "v2", To: "v1"}},
		},
		"StorageMovedPastServed": {
			reason: "Clients write v2, too, though objects were stored in v1, and v3 has no spec.",
			before: both(moved, third), after: both(third, version(2, "storage", true), version(1, "storage", false)),
			want: []Change{{Rule: Storage, From: "v1", To: "v3", Breaking: true}, {
				Rule: Unconverted, Version: "v2", Path: "spec", Breaking: true,
				Why: "is not in v3, in which objects are stored: it is lost at the next write",
			}},
		},
		"StorageMovedPastStored": {
			reason: "Objects may still be stored in v2, which is not served any more.",
			before: both(moved, third, version(1, "served", false), func(crd map[string]any) {
				crd["status"] = map[string]any{"storedVersions": []any{"v2", "v1"}}
			}),
			after: both(third, version(2, "storage", true), version(1, "storage", false), version(1, "served", false)),
			want: []Change{{Rule: Storage, From: "v1", To: "v3", Breaking: true}, {
				Rule: Unconverted, Version: "v2", Path: "spec", Breaking: true,
				Why: "is not in v3, in which objects are stored: it is lost at the next write",
			}},
		},
		"ReferenceableMoved": {
			reason: "Crossplane stores composites in the version that compositions may refer to.", kind: "CompositeResourceDefinition",
			before: referenceable(1), after: referenceable(0),
			want: []Change{{Rule: Storage, From: "v2", To: "v1", Breaking: true}, {
				Rule: Unconverted, Version: "v2", Path: "spec", Breaking: true,
				Why: "is not in v1, in which objects are stored: it is lost at the next write",
			}},
		},
		"StatusGone": {reason: "Controllers write there.", after: version(1, "subresources", nil), want: v2(Subresource, "", "status", "")},
		"Selectable": {reason: "Queries by it fail.", after: version(1, "selectableFields", nil), want: v2(Selectable, "spec.region", "", "")},
	}
}

// pair is the definition before and after.
func (tc ruleCase) pair(t *testing.T) (before, after *unstructured.Unstructured) {
	t.Helper()
	made := func(edit func(map[string]any)) *unstructured.Unstructured {
		j, err := yaml.YAMLToJSON([]byte(definition))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(j); err != nil {
			t.Fatal(err)
		}
		if edit != nil {
			edit(u.Object)
		}
		if tc.kind != "" {
			u.SetAPIVersion("apiextensions.crossplane.io/v1alpha1")
			u.SetKind(tc.kind)
		}
		return u
	}
	return made(tc.before), made(tc.after)
}

func TestCompare(t *testing.T) {
	for name, tc := range ruleCases() {
		t.Run(name, func(t *testing.T) {
			before, after := tc.pair(t)
			want := Difference{Changes: tc.want, Added: tc.added, Words: tc.words}
			if diff := cmp.Diff(want, Compare(before, after), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nCompare(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
