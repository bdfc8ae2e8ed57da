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
			reason: "Nobody has to use it.", after: put("new", map[string]any{"type": "string"}, "properties"),
			added: []Change{{Rule: "field", Version: "v2", Path: "spec.new"}},
		},
		"VersionAdded": {
			reason: "Nobody has to use it.",
			after: func(crd map[string]any) {
				spec := at(crd, "spec")
				spec["versions"] = append(spec["versions"].([]any), map[string]any{
					"name": "v3", "served": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
				})
			},
			added: []Change{{Rule: "version", Version: "v3"}},
		},
		"FieldRemoved": {reason: "What is in it is dropped.", after: put("note", nil, "properties"), want: v2(Field, "spec.note", "", "")},
		"FieldRemovedInList": {
			reason: "So it is in every item.", after: put("host", nil, "properties", "rules", "items", "properties"),
			want: v2(Field, "spec.rules[].host", "", ""),
		},
		"TreeRemoved": {
			reason: "One word is enough for all that is below.", after: put("rules", nil, "properties"),
			want: v2(Field, "spec.rules", "", ""),
		},
		"Type":           {reason: "No value fits both.", after: put("type", "string", "properties", "size"), want: v2("type", "spec.size", `"integer"`, `"string"`)},
		"TypeInMap":      {reason: "Nor here.", after: put("type", "integer", "properties", "tags", "additionalProperties"), want: v2("type", "spec.tags.*", `"string"`, `"integer"`)},
		"Required":       {reason: "Objects without it are refused.", after: put("required", []any{"region", "size"}), want: v2(Required, "spec.size", "", "")},
		"NotRequired":    {reason: "It may still be given.", after: put("required", nil), want: fine(v2(Required, "spec.region", "", ""))},
		"EnumNarrowed":   {reason: "south is refused.", after: put("enum", []any{"north"}, "properties", "region"), want: v2("enum", "spec.region", `["north","south"]`, `["north"]`)},
		"EnumWidened":    {reason: "What was allowed is.", after: put("enum", []any{"north", "south", "west"}, "properties", "region"), want: fine(v2("enum", "spec.region", `["north","south"]`, `["north","south","west"]`))},
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
		"DefaultChanged": {reason: "Whoever left it out gets another region.", after: put("default", "south", "properties", "region"), want: v2("default", "spec.region", `"north"`, `"south"`)},
		"DefaultAdded":   {reason: "Whoever left it out gets a name.", after: put("default", "a", "properties", "name"), want: v2("default", "spec.name", "", `"a"`)},
		"DefaultRemoved": {reason: "Whoever left it out gets none.", after: put("default", nil, "properties", "region"), want: v2("default", "spec.region", `"north"`, "")},
		"NullRefused":    {reason: "Nulls are dropped or refused.", after: put("nullable", nil, "properties", "note"), want: v2("nullable", "spec.note", "true", "")},
		"NullAllowed":    {reason: "Nobody has to.", after: put("nullable", true, "properties", "name"), want: fine(v2("nullable", "spec.name", "", "true"))},
		"KeepsNoUnknown": {reason: "crdify does not know it, and what is in it is dropped.", after: put("x-kubernetes-preserve-unknown-fields", nil, "properties", "free"), want: v2("x-kubernetes-preserve-unknown-fields", "spec.free", "true", "")},
		"KeepsUnknown":   {reason: "More is kept.", after: put("x-kubernetes-preserve-unknown-fields", true, "properties", "tags"), want: fine(v2("x-kubernetes-preserve-unknown-fields", "spec.tags", "", "true"))},
		"ListType":       {reason: "Appliers merge otherwise.", after: put("x-kubernetes-list-type", "set", "properties", "rules"), want: v2("x-kubernetes-list-type", "spec.rules", `"atomic"`, `"set"`)},
		"FormatAdded":    {reason: "What is no date is refused.", after: put("format", "date", "properties", "note"), want: v2("format", "spec.note", "", `"date"`)},
		"FormatRemoved":  {reason: "All is fine.", before: put("format", "date", "properties", "note"), want: fine(v2("format", "spec.note", `"date"`, ""))},
		"ValidationAdded": {
			reason: "crdify does not know rules in CEL.",
			after:  put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8"}, map[string]any{"rule": "self.name != ''"}}),
			want:   v2(Validation, "spec", "", "self.name != ''"), words: true,
		},
		"ValidationRemoved": {
			reason: "What was refused is taken.", after: put("x-kubernetes-validations", []any{}), want: fine(v2(Validation, "spec", "self.size < 8", "")), words: true,
		},
		"ValidationMessage": {reason: "The rule is the same.", after: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8", "message": "no"}}), words: true},
		"Immutable": {
			reason: "Whoever changes it is refused.",
			after:  put("x-kubernetes-validations", []any{map[string]any{"rule": "self == oldSelf"}}, "properties", "region"),
			want:   v2(Immutable, "spec.region", "", "self == oldSelf"), words: true,
		},
		"Alternatives": {
			reason: "Of those crdify counts every schema that goes as a field.", before: put("anyOf", []any{map[string]any{"minimum": int64(3)}}, "properties", "size"),
			want: v2("anyOf", "spec.size", `[{"minimum":3}]`, ""),
		},
		"Unreadable": {reason: "Nothing is known of it, so it counts.", after: put("maxLength", "long", "properties", "name"), want: v2("maxLength", "spec.name", "9", `"long"`)},
		"Scope": {
			reason: "No object of the one fits the other.", after: func(crd map[string]any) { at(crd, "spec")["scope"] = "Cluster" },
			want: []Change{{Rule: Scope, From: `"Namespaced"`, To: `"Cluster"`, Breaking: true}},
		},
		"Kind":      {reason: "The API server refuses that.", after: names("kind", "Pail"), want: []Change{{Rule: Names, Path: "names.kind", From: `"Bucket"`, To: `"Pail"`, Breaking: true}}},
		"ShortName": {reason: "What people type may change.", after: names("shortNames", []any{"b"}), want: []Change{{Rule: Names, Path: "names.shortNames", To: `["b"]`}}},
		"ShortNameOfDefinition": {
			reason: "Nothing of the names of an MRD can change.", kind: "ManagedResourceDefinition", after: names("shortNames", []any{"b"}),
			want: []Change{{Rule: Names, Path: "names.shortNames", To: `["b"]`, Breaking: true}},
		},
		"VersionRemoved": {
			reason: "Whoever uses it is left alone.",
			after:  func(crd map[string]any) { at(crd, "spec")["versions"] = at(crd, "spec")["versions"].([]any)[1:] },
			want:   []Change{{Rule: Removed, Version: "v1", Breaking: true}},
		},
		"VersionUnserved":   {reason: "Whoever uses it is left alone.", after: version(0, "served", false), want: []Change{{Rule: Unserved, Version: "v1", Breaking: true}}},
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
				{Rule: "default", Version: "v1", Path: "spec.name", To: `"a"`, Breaking: true},
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
