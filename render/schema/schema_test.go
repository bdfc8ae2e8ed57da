//test:package minutes=1
package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A ruleCase is one possible change of a definition.
type ruleCase struct {
	reason string
	kind   string // kind of the definition if it is not a CRD
	// These edit a definition with the versions v1 and v2. v2 is the storage version. nil means no edit.
	before, after func(crd map[string]any)
	want          []Change
	added         []Change
	words         bool
}

// definition is a CRD as users write it.
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

// at returns the map at a path below a map. Numbers are list indexes.
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

// field returns the schema at a path below the spec of v2.
func field(crd map[string]any, path ...any) map[string]any {
	return at(crd, append([]any{"spec", "versions", 1, "schema", "openAPIV3Schema", "properties", "spec"}, path...)...)
}

// put sets a keyword of a field. A nil value removes it.
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
	// alike makes v1 accept the same objects as v2, except for an edit of its spec.
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
	// fourth adds a version that accepts the same objects as v2, except for an edit of its spec.
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
		"Description": {reason: "Descriptions do not affect objects.", after: put("description", "Elsewhere.", "properties", "region"), words: true},
		"FieldAdded": {
			reason: "An added field is optional.", after: put("new", map[string]any{"type": "string"}, "properties"),
			added: []Change{{Rule: "field", Version: "v2", Path: "spec.new"}},
		},
		"VersionAdded": {
			reason: "The new version accepts the same objects as the storage version.", after: fourth(nil), added: []Change{{Rule: "version", Version: "v4"}},
		},
		"VersionAddedUnserved": {
			reason: "No object can be written in an unserved version.", after: both(third, version(2, "served", false)), added: []Change{{Rule: "version", Version: "v3"}},
		},
		"VersionAddedByWebhook": {
			reason: "The webhook converts the objects.", after: both(third, func(crd map[string]any) {
				at(crd, "spec")["conversion"] = map[string]any{"strategy": "Webhook"}
			}),
			added: []Change{{Rule: "version", Version: "v3"}},
		},
		"VersionAddedWithLess": {
			reason: "The new version v3 has no spec.", after: third, added: []Change{{Rule: "version", Version: "v3"}},
			want: []Change{{
				Rule: Unshared, Version: "v3", Path: "spec", Breaking: true,
				Why: "is only in v2, in which objects are stored: an update in v3 loses it",
			}},
		},
		"VersionAddedWithMore": {
			reason: "Fields that only v4 has are not stored.", added: []Change{{Rule: "version", Version: "v4"}},
			after: fourth(func(spec map[string]any) { at(spec, "properties")["new"] = map[string]any{"type": "string"} }),
			want: []Change{{
				Rule: Unshared, Version: "v4", Path: "spec.new", Breaking: true,
				Why: "is not in v2, in which objects are stored: it is lost at the next write",
			}},
		},
		"VersionAddedWithOtherType": {
			reason: "Each version refuses values of the other, which is reported once.", added: []Change{{Rule: "version", Version: "v4"}},
			after: fourth(func(spec map[string]any) {
				at(spec, "properties")["note"] = map[string]any{"type": "integer", "nullable": true}
			}),
			want: []Change{{
				Rule: Unshared, Version: "v4", Path: "spec.note", Breaking: true,
				Why: `is not as in v2, in which objects are stored: type was "string" and is "integer"`,
			}},
		},
		"VersionServed": {
			reason: "The version was declared before, but no object could be written in it.", before: both(third, version(2, "served", false)), after: third,
			want: []Change{{
				Rule: Unshared, Version: "v3", Path: "spec", Breaking: true,
				Why: "is only in v2, in which objects are stored: an update in v3 loses it",
			}},
		},
		"VersionAddedToStore": {
			reason: "v4 accepts everything that v2 accepts, and an update in v2 drops the fields that only v4 has.", added: []Change{{Rule: "version", Version: "v4"}},
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
		"FieldRemoved": {reason: "The value of a removed field is dropped.", after: put("note", nil, "properties"), want: v2(Field, "spec.note", "", "")},
		"FieldRemovedInList": {
			reason: "The removed field is dropped in every item.", after: put("host", nil, "properties", "rules", "items", "properties"),
			want: v2(Field, "spec.rules[].host", "", ""),
		},
		"TreeRemoved": {
			reason: "One report is enough for all fields below a removed one.", after: put("rules", nil, "properties"),
			want: v2(Field, "spec.rules", "", ""),
		},
		"Type": {
			reason: "No value has both types.", before: put("x-kubernetes-validations", nil), after: both(put("x-kubernetes-validations", nil), put("type", "string", "properties", "size")),
			want: v2("type", "spec.size", `"integer"`, `"string"`),
		},
		"TypeInMap":      {reason: "No value in the map has both types.", after: put("type", "integer", "properties", "tags", "additionalProperties"), want: v2("type", "spec.tags.*", `"string"`, `"integer"`)},
		"Required":       {reason: "Objects without the field are refused.", after: put("required", []any{"region", "size"}), want: v2(Required, "spec.size", "", "")},
		"NotRequired":    {reason: "An optional field may still be set.", after: put("required", nil), want: fine(v2(Required, "spec.region", "", ""))},
		"EnumNarrowed":   {reason: "The value south is refused.", after: put("enum", []any{"north"}, "properties", "region"), want: v2("enum", "spec.region", `["north","south"]`, `["north"]`)},
		"EnumWidened":    {reason: "Allowed values remain allowed.", after: put("enum", []any{"north", "south", "west"}, "properties", "region"), want: fine(v2("enum", "spec.region", `["north","south"]`, `["north","south","west"]`))},
		"EnumAdded":      {reason: "Any value was allowed before.", after: put("enum", []any{"a"}, "properties", "name"), want: v2("enum", "spec.name", "", `["a"]`)},
		"MinimumRaised":  {reason: "The value 1 is refused.", after: put("minimum", int64(2), "properties", "size"), want: v2("minimum", "spec.size", "1", "2")},
		"MinimumLowered": {reason: "More values are allowed.", after: put("minimum", int64(0), "properties", "size"), want: fine(v2("minimum", "spec.size", "1", "0"))},
		"MaximumLowered": {reason: "The value 9 is refused.", after: put("maximum", int64(8), "properties", "size"), want: v2("maximum", "spec.size", "9", "8")},
		"MinLength":      {reason: "The value \\\"a\\\" is refused.", after: put("minLength", int64(2), "properties", "name"), want: v2("minLength", "spec.name", "1", "2")},
		"MaxLength":      {reason: "Long names are refused.", after: put("maxLength", int64(8), "properties", "name"), want: v2("maxLength", "spec.name", "9", "8")},
		"MaxLengthAdded": {reason: "Any length was allowed before.", after: put("maxLength", int64(8), "properties", "note"), want: v2("maxLength", "spec.note", "", "8")},
		"MinItems":       {reason: "A list with one rule is refused.", after: put("minItems", int64(2), "properties", "rules"), want: v2("minItems", "spec.rules", "1", "2")},
		"MaxItems":       {reason: "A list with nine rules is refused.", after: put("maxItems", int64(8), "properties", "rules"), want: v2("maxItems", "spec.rules", "9", "8")},
		"MaxProperties":  {reason: "Any number of entries was allowed before.", after: put("maxProperties", int64(8), "properties", "tags"), want: v2("maxProperties", "spec.tags", "", "8")},
		"MinProperties":  {reason: "An empty map was allowed before.", after: put("minProperties", int64(1), "properties", "tags"), want: v2("minProperties", "spec.tags", "", "1")},
		"PatternWider":   {reason: "Every text that matched still matches.", after: put("pattern", "^[a-c]", "properties", "name"), want: fine(v2("pattern", "spec.name", `"^a"`, `"^[a-c]"`))},
		"PatternForAll":  {reason: "Every text matches.", after: put("pattern", ".*", "properties", "note"), want: fine(v2("pattern", "spec.note", "", `".*"`))},
		"PatternUndecided": {
			reason: "Both patterns have millions of states, so nothing is known.",
			before: put("pattern", "(a|b)*a(a|b){40}x", "properties", "name"), after: put("pattern", "(a|b)*a(a|b){39}(x|y)$", "properties", "name"),
			want: fine(v2(Undecided, "spec.name", `"(a|b)*a(a|b){40}x"`, `"(a|b)*a(a|b){39}(x|y)$"`)),
		},
		"PatternChanged": {reason: "The value \\\"ab\\\" may be refused.", after: put("pattern", "^b", "properties", "name"), want: v2("pattern", "spec.name", `"^a"`, `"^b"`)},
		"PatternAdded":   {reason: "Any text was allowed before.", after: put("pattern", "^b", "properties", "note"), want: v2("pattern", "spec.note", "", `"^b"`)},
		"PatternRemoved": {reason: "Any text is allowed now.", after: put("pattern", nil, "properties", "name"), want: fine(v2("pattern", "spec.name", `"^a"`, ""))},
		"DefaultChanged": {reason: "Users that omit the field get another region.", after: put("default", "south", "properties", "region"), want: fine(v2("default", "spec.region", `"north"`, `"south"`))},
		"DefaultAdded":   {reason: "Users that omit the field get a name.", after: put("default", "a", "properties", "name"), want: fine(v2("default", "spec.name", "", `"a"`))},
		"DefaultRemoved": {
			reason: "The field is required, so objects without it are refused.", after: put("default", nil, "properties", "region"),
			want: append(fine(v2("default", "spec.region", `"north"`, "")), v2(Required, "spec.region", "", "")...),
		},
		"NullRefused":    {reason: "Nulls are dropped or refused.", after: put("nullable", nil, "properties", "note"), want: v2("nullable", "spec.note", "true", "")},
		"NullAllowed":    {reason: "Null is an additional value.", after: put("nullable", true, "properties", "name"), want: fine(v2("nullable", "spec.name", "", "true"))},
		"KeepsNoUnknown": {reason: "crdify does not know this keyword, and unknown fields are dropped.", after: put("x-kubernetes-preserve-unknown-fields", nil, "properties", "free"), want: v2("x-kubernetes-preserve-unknown-fields", "spec.free", "true", "")},
		"KeepsUnknown":   {reason: "More fields are kept.", after: put("x-kubernetes-preserve-unknown-fields", true, "properties", "tags"), want: fine(v2("x-kubernetes-preserve-unknown-fields", "spec.tags", "", "true"))},
		"ListType":       {reason: "Field managers merge the list in another way.", after: put("x-kubernetes-list-type", "set", "properties", "rules"), want: v2("x-kubernetes-list-type", "spec.rules", `"atomic"`, `"set"`)},
		"FormatAdded":    {reason: "A text that is not a date is refused.", after: put("format", "date", "properties", "note"), want: v2("format", "spec.note", "", `"date"`)},
		"FormatRemoved":  {reason: "Any text is allowed now.", before: put("format", "date", "properties", "note"), want: fine(v2("format", "spec.note", `"date"`, ""))},
		"ValidationAdded": {
			reason: "crdify does not know CEL rules.",
			after:  put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8"}, map[string]any{"rule": "self.name != ''"}}),
			want:   v2(Validation, "spec", "", "self.name != ''"), words: true,
		},
		"RequiredBecomesARule": {
			reason: "Every object has the field.", after: both(put("required", []any{}), put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8"}, map[string]any{"rule": "self.size > 3 || (has(self.region))"}})),
			want: append(fine(v2(Validation, "spec", "", "self.size > 3 || (has(self.region))")), fine(v2(Required, "spec.region", "", ""))...), words: true,
		},
		"RuleOfANewField": {
			reason: "No object has the field.",
			after: both(put("more", map[string]any{"type": "string"}, "properties"), put("x-kubernetes-validations", []any{
				map[string]any{"rule": "self.size < 8"}, map[string]any{"rule": "!has(self.more) || self.more != ''"},
				map[string]any{"rule": "!oldSelf.hasValue() || !has(oldSelf.value().more) || has(self.more)", "optionalOldSelf": true},
			})),
			want:  append(fine(v2(Immutable, "spec", "", "!oldSelf.hasValue() || !has(oldSelf.value().more) || has(self.more)")), fine(v2(Validation, "spec", "", "!has(self.more) || self.more != ''"))...),
			added: fine(v2("field", "spec.more", "", "")), words: true,
		},
		"RuleDemandsANewField": {
			reason: "No object has the field.",
			after:  both(put("more", map[string]any{"type": "string"}, "properties"), put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8"}, map[string]any{"rule": "has(self.more)"}})),
			want:   v2(Validation, "spec", "", "has(self.more)"), added: fine(v2("field", "spec.more", "", "")), words: true,
		},
		"RuleBesideANewField": {
			reason: "No object has the field.",
			after:  both(put("more", map[string]any{"type": "string"}, "properties"), put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8"}, map[string]any{"rule": "!(has(self.more) && has(self.note))"}})),
			want:   fine(v2(Validation, "spec", "", "!(has(self.more) && has(self.note))")), added: fine(v2("field", "spec.more", "", "")), words: true,
		},
		"RuleDemandsAnOptionalField": {
			reason: "An object may lack the field.", after: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8"}, map[string]any{"rule": "has(self.note)"}}),
			want: v2(Validation, "spec", "", "has(self.note)"), words: true,
		},
		"RuleInBrackets": {
			reason: "Brackets and quotes change nothing.", before: put("x-kubernetes-validations", []any{map[string]any{"rule": `(self.size < 8) || (self.name == "a")`}}),
			after: put("x-kubernetes-validations", []any{map[string]any{"rule": `self.size<8 || self.name == 'a'`}}), words: true,
		},
		"RuleInOtherWords": {
			reason: "Brackets inside a ternary and a macro, the order of brackets, and a raw text change nothing.", words: true,
			before: put("x-kubernetes-validations", []any{map[string]any{"rule": `(has(self.note)) ? (self.rules.all(r, (r.host != "a"))) : ((self.size < 8 || self.size > 9) || (self.name == r"a"))`}}),
			after:  put("x-kubernetes-validations", []any{map[string]any{"rule": `has(self.note) ? self.rules.all(r, r.host != 'a') : self.size < 8 || (self.size > 9 || self.name == 'a')`}}),
		},
		"RuleOtherTernary": {
			reason: "Brackets around a ternary change the rule.",
			before: put("x-kubernetes-validations", []any{map[string]any{"rule": "has(self.note) ? self.size < 8 : self.size < 9 || self.name == 'a'"}}),
			after:  put("x-kubernetes-validations", []any{map[string]any{"rule": "(has(self.note) ? self.size < 8 : self.size < 9) || self.name == 'a'"}}), words: true,
			want: []Change{
				{Rule: Validation, Version: "v2", Path: "spec", From: "has(self.note) ? self.size < 8 : self.size < 9 || self.name == 'a'"},
				{Rule: Validation, Version: "v2", Path: "spec", To: "(has(self.note) ? self.size < 8 : self.size < 9) || self.name == 'a'", Breaking: true},
			},
		},
		"RuleOtherBrackets": {
			reason: "Brackets around alternatives change the rule.", before: put("x-kubernetes-validations", []any{map[string]any{"rule": "(self.size < 8 || self.size > 9) && self.size != 3"}}),
			after: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8 || self.size > 9 && self.size != 3"}}),
			want:  append(fine(v2(Validation, "spec", "(self.size < 8 || self.size > 9) && self.size != 3", "")), v2(Validation, "spec", "", "self.size < 8 || self.size > 9 && self.size != 3")...), words: true,
		},
		"ValidationRemoved": {
			reason: "Values that were refused are now accepted.", after: put("x-kubernetes-validations", []any{}), want: fine(v2(Validation, "spec", "self.size < 8", "")), words: true,
		},
		"ValidationMessage": {reason: "The rule is the same.", after: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.size < 8", "message": "no"}}), words: true},
		"Immutable": {
			reason: "Updates that change the field are refused.",
			after:  put("x-kubernetes-validations", []any{map[string]any{"rule": "self == oldSelf"}}, "properties", "region"),
			want:   v2(Immutable, "spec.region", "", "self == oldSelf"), words: true,
		},
		// These changes neither drop nor refuse a value.
		"RequiredWithDefault": {
			reason: "The API server sets the default of the required field.", before: put("default", "a", "properties", "name"), after: both(put("default", "a", "properties", "name"), put("required", []any{"region", "name"})),
			want: fine(v2(Required, "spec.name", "", `"a"`)),
		},
		"DefaultThatARuleReads": {
			reason: "A rule that reads the field may depend on its default.", before: put("x-kubernetes-validations", []any{map[string]any{"rule": "has(self.name) != has(self.note)"}}),
			after: both(put("x-kubernetes-validations", []any{map[string]any{"rule": "has(self.name) != has(self.note)"}}), put("default", "a", "properties", "name")),
			want:  v2(Default, "spec.name", "", `"a"`),
		},
		"AddedWithDefault": {
			reason: "Every object gains the field, and may have too many.", before: put("maxProperties", int64(2)),
			after: both(put("maxProperties", int64(2)), put("more", map[string]any{"type": "string", "default": "a"}, "properties")),
			want:  v2(Default, "spec.more", "", `"a"`), added: fine(v2("field", "spec.more", "", "")),
		},
		"ListBecomesAtomic": {reason: "A list without a type is atomic.", before: put("x-kubernetes-list-type", nil, "properties", "rules"), after: nil, want: fine(v2("x-kubernetes-list-type", "spec.rules", "", `"atomic"`))},
		"SetBecomesList":    {reason: "A list accepts more values than a set.", before: put("x-kubernetes-list-type", "set", "properties", "rules"), after: put("x-kubernetes-list-type", nil, "properties", "rules"), want: fine(v2("x-kubernetes-list-type", "spec.rules", `"set"`, ""))},
		"MapBecomesAtomic":  {reason: "The map type does not refuse any object.", after: put("x-kubernetes-map-type", "atomic", "properties", "tags"), want: fine(v2("x-kubernetes-map-type", "spec.tags", "", `"atomic"`))},
		"MapIsGranular":     {reason: "A map without a type is granular.", after: put("x-kubernetes-map-type", "granular", "properties", "tags"), want: fine(v2("x-kubernetes-map-type", "spec.tags", "", `"granular"`))},
		"EnumRemoved":       {reason: "Any value is accepted.", after: put("enum", nil, "properties", "region"), want: fine(v2("enum", "spec.region", `["north","south"]`, ""))},
		"IntegerBecomesNumber": {
			reason: "Every integer is a number.", before: put("x-kubernetes-validations", nil), after: both(put("x-kubernetes-validations", nil), put("type", "number", "properties", "size")),
			want: fine(v2("type", "spec.size", `"integer"`, `"number"`)),
		},
		"NumberBecomesInteger": {
			reason: "The value 0.5 is not an integer.", before: put("type", "number", "properties", "name"), after: put("type", "integer", "properties", "name"),
			want: v2("type", "spec.name", `"number"`, `"integer"`),
		},
		"IntegerBecomesIntOrString": {
			reason: "Integers are still accepted.", before: put("ports", map[string]any{"type": "integer"}, "properties"),
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
		"FormatWidened":     {reason: "The wider format refuses no number.", before: put("format", "int32", "properties", "size"), after: put("format", "int64", "properties", "size"), want: fine(v2("format", "spec.size", `"int32"`, `"int64"`))},
		"FormatNarrowed":    {reason: "The narrower format refuses 2147483648, which has no other limit.", before: put("maximum", nil, "properties", "size"), after: both(put("maximum", nil, "properties", "size"), put("format", "int32", "properties", "size")), want: v2("format", "spec.size", "", `"int32"`)},
		"FormatNotEnforced": {reason: "The API server does not enforce an unknown format.", after: put("format", "arn", "properties", "note"), want: fine(v2("format", "spec.note", "", `"arn"`))},
		"NoMinLength":       {reason: "No text is shorter than zero.", after: put("minLength", int64(0), "properties", "note"), want: fine(v2("minLength", "spec.note", "", "0"))},
		"NoMinItems":        {reason: "No list is shorter than zero.", before: put("minItems", nil, "properties", "rules"), after: put("minItems", int64(0), "properties", "rules"), want: fine(v2("minItems", "spec.rules", "", "0"))},
		"MultipleDivides": {
			reason: "Every multiple of 10 is a multiple of 5.", before: put("multipleOf", int64(10), "properties", "size"), after: put("multipleOf", int64(5), "properties", "size"),
			want: fine(v2("multipleOf", "spec.size", "10", "5")),
		},
		"MultipleGrows": {
			reason: "The value 5 is refused.", before: put("multipleOf", int64(5), "properties", "size"), after: put("multipleOf", int64(10), "properties", "size"),
			want: v2("multipleOf", "spec.size", "5", "10"),
		},
		"ExclusiveOfIntegers": {
			reason: "An integer above 0 is at least 1.", after: both(put("minimum", int64(0), "properties", "size"), put("exclusiveMinimum", true, "properties", "size")),
			want: append(fine(v2("exclusiveMinimum", "spec.size", "", "true")), fine(v2("minimum", "spec.size", "1", "0"))...),
		},
		"AnyOfGains":     {reason: "One more alternative is accepted.", before: put("anyOf", small, "properties", "size"), after: put("anyOf", smallOrLarge, "properties", "size"), want: fine(v2("anyOf", "spec.size", asJSON(small), asJSON(smallOrLarge)))},
		"AnyOfLoses":     {reason: "The value 8 is refused.", before: put("anyOf", smallOrLarge, "properties", "size"), after: put("anyOf", small, "properties", "size"), want: v2("anyOf", "spec.size", asJSON(smallOrLarge), asJSON(small))},
		"AnyOfGoes":      {reason: "Without anyOf, no value is refused.", before: put("anyOf", small, "properties", "size"), want: fine(v2("anyOf", "spec.size", asJSON(small), ""))},
		"AllOfLoses":     {reason: "One condition fewer has to hold.", before: put("allOf", smallOrLarge, "properties", "size"), after: put("allOf", small, "properties", "size"), want: fine(v2("allOf", "spec.size", asJSON(smallOrLarge), asJSON(small)))},
		"AllOfGains":     {reason: "One condition more has to hold.", before: put("allOf", small, "properties", "size"), after: put("allOf", smallOrLarge, "properties", "size"), want: v2("allOf", "spec.size", asJSON(small), asJSON(smallOrLarge))},
		"OneOfGains":     {reason: "A value that matches both is refused.", before: put("oneOf", small, "properties", "size"), after: put("oneOf", smallOrLarge, "properties", "size"), want: v2("oneOf", "spec.size", asJSON(small), asJSON(smallOrLarge))},
		"OneOfLoses":     {reason: "The value 8 is refused.", before: put("oneOf", smallOrLarge, "properties", "size"), after: put("oneOf", small, "properties", "size"), want: v2("oneOf", "spec.size", asJSON(smallOrLarge), asJSON(small))},
		"NotRefusesLess": {reason: "The values that not refuses were refused before.", before: put("not", map[string]any{"maximum": int64(3)}, "properties", "size"), after: put("not", map[string]any{"maximum": int64(2)}, "properties", "size"), want: fine(v2("not", "spec.size", `{"maximum":3}`, `{"maximum":2}`))},
		"ValidationSpaced": {
			reason: "Whitespace and comments in a rule do not matter.", words: true,
			after: put("x-kubernetes-validations", []any{map[string]any{"rule": " self.size<8 // small\n"}}),
		},
		"ValidationSpacedInText": {
			reason: "Whitespace inside a text of a rule matters.", before: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.name != 'a b'"}}), words: true,
			after: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.name != 'a  b'"}}),
			want: []Change{
				{Rule: Validation, Version: "v2", Path: "spec", From: "self.name != 'a b'"},
				{Rule: Validation, Version: "v2", Path: "spec", To: "self.name != 'a  b'", Breaking: true},
			},
		},
		"StructBecomesMap": {
			reason: "A map of texts accepts every text field.", before: put("tags", map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}}}, "properties"),
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

		// These changes are easy to miss.
		"FieldAddedAndTyped": {
			reason: "Any value was accepted before.", after: put("properties", map[string]any{"a": map[string]any{"type": "string"}}, "properties", "free"),
			want: []Change{
				{Rule: "nullable", Version: "v2", Path: "spec.free.a", From: "true", Breaking: true},
				{Rule: "type", Version: "v2", Path: "spec.free.a", To: `"string"`, Breaking: true},
			},
		},
		"StatusAdded": {reason: "Writing the object no longer writes its status.", before: version(1, "subresources", nil), want: v2(Subresource, "", "", "status")},
		"ScaleMoved": {
			reason: "Autoscalers now write another field.", before: version(1, "subresources", scaled(".spec.size")), after: version(1, "subresources", scaled(".spec.count")),
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
			reason: "Every rule has a cost budget.", words: true,
			after: put("x-kubernetes-validations", []any{map[string]any{"rule": "self.all(a, self.all(b, self.all(c, a == b || b != c)))"}}, "properties", "tags"),
			want: []Change{
				{Rule: Refused, Version: "v2", Path: "spec.tags", Breaking: true, Why: "has a rule that the API server refuses: Forbidden: estimated rule cost exceeds budget by factor of more than 100x"},
				{Rule: Validation, Version: "v2", Path: "spec.tags", To: "self.all(a, self.all(b, self.all(c, a == b || b != c)))", Breaking: true},
			},
		},
		"ValidationThatDidNotCompile": {
			reason: "The API server refused the CRD before, although the type in its reason has another number each time.",
			before: put("x-kubernetes-validations", []any{map[string]any{"rule": "size(self) < 8"}}),
			after:  both(put("x-kubernetes-validations", []any{map[string]any{"rule": "size(self) < 8"}}), put("free", nil, "properties")),
			want:   v2(Field, "spec.free", "", ""),
		},
		"RuleReadsWhatIsGone": {
			reason: "The API server refuses the CRD.", after: put("size", nil, "properties"),
			want: []Change{
				{Rule: Refused, Version: "v2", Path: "spec", Breaking: true, Why: "has a rule that the API server refuses: compilation failed: ERROR: <input>:1:5: undefined field 'size'"},
				{Rule: Field, Version: "v2", Path: "spec.size", Breaking: true},
			},
		},
		"Unreadable": {reason: "An unreadable value may mean anything, so it counts as breaking.", after: put("maxLength", "long", "properties", "name"), want: v2("maxLength", "spec.name", "9", `"long"`)},
		"Scope": {
			reason: "No object of one scope fits the other.", after: func(crd map[string]any) { at(crd, "spec")["scope"] = "Cluster" },
			want: []Change{{Rule: Scope, From: `"Namespaced"`, To: `"Cluster"`, Breaking: true}},
		},
		"Kind":      {reason: "The API server refuses another kind.", after: names("kind", "Pail"), want: []Change{{Rule: Names, Path: "names.kind", From: `"Bucket"`, To: `"Pail"`, Breaking: true}}},
		"ShortName": {reason: "Short names may change.", after: names("shortNames", []any{"b"}), want: []Change{{Rule: Names, Path: "names.shortNames", To: `["b"]`}}},
		"ShortNameOfDefinition": {
			reason: "No name of an MRD may change.", kind: "ManagedResourceDefinition", after: names("shortNames", []any{"b"}),
			want: []Change{{Rule: Names, Path: "names.shortNames", To: `["b"]`, Breaking: true}},
		},
		"VersionRemoved": {
			reason: "Users of the version can no longer use it.",
			after:  func(crd map[string]any) { at(crd, "spec")["versions"] = at(crd, "spec")["versions"].([]any)[1:] },
			want:   []Change{{Rule: Removed, Version: "v1", Breaking: true}},
		},
		"VersionUnserved":   {reason: "Users of the version can no longer use it.", after: version(0, "served", false), want: []Change{{Rule: Unserved, Version: "v1", Breaking: true}}},
		"VersionDeprecated": {reason: "A deprecated version works as before.", after: version(0, "deprecated", true), want: []Change{{Rule: Deprecated, Version: "v1"}}},
		"StorageMoved": {
			reason: "Nothing converts the stored objects, and v1 has no spec.", after: moved,
			want: []Change{{Rule: Storage, From: "v2", To: "v1", Breaking: true}, {
				Rule: Unconverted, Version: "v2", Path: "spec", Breaking: true,
				Why: "is not in v1, in which objects are stored: it is lost at the next write",
			}},
		},
		"StorageMovedToEqual": {
			reason: "v1 has all fields of v2.", before: alike(nil), after: both(alike(nil), moved),
			want: []Change{{Rule: Storage, From: "v2", To: "v1"}},
		},
		"StorageMovedToWider": {
			reason: "v1 accepts more, sets a default, and merges lists in another way.",
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
			reason: "Providers do this: a list with one item becomes an object.",
			before: alike(list), after: both(alike(list), moved),
			want: []Change{{Rule: Storage, From: "v2", To: "v1", Breaking: true}, {
				Rule: Unconverted, Version: "v2", Path: "spec.rules[].port", Breaking: true,
				Why: "is not in v1, in which objects are stored: it is lost at the next write",
			}},
		},
		"StorageMovedByWebhook": {
			reason: "The webhook converts the stored objects.", after: both(moved, func(crd map[string]any) {
				at(crd, "spec")["conversion"] = map[string]any{"strategy": "Webhook"}
			}),
			want: []Change{{Rule: Storage, From: "v2", To: "v1"}},
		},
		"StorageMovedAndKept": {
			reason: "v1 keeps unknown fields.", before: alike(keeping), after: both(alike(keeping), moved),
			want: []Change{{Rule: Storage, From: "v2", To: "v1"}},
		},
		"StorageMovedBelowStatus": {
			reason: "A controller writes the status again.",
			before: both(alike(nil), statusOf(1)), after: both(alike(nil), statusOf(1), moved),
			want: []Change{{Rule: Storage, From: "v2", To: "v1"}},
		},
		"StorageMovedPastServed": {
			reason: "Objects were stored in v1, but clients also write v2, and v3 has no spec.",
			before: both(moved, third), after: both(third, version(2, "storage", true), version(1, "storage", false)),
			want: []Change{{Rule: Storage, From: "v1", To: "v3", Breaking: true}, {
				Rule: Unconverted, Version: "v2", Path: "spec", Breaking: true,
				Why: "is not in v3, in which objects are stored: it is lost at the next write",
			}},
		},
		"StorageMovedPastStored": {
			reason: "Objects may still be stored in v2, which is no longer served.",
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
			reason: "Crossplane stores composites in the version that compositions may reference.", kind: "CompositeResourceDefinition",
			before: referenceable(1), after: referenceable(0),
			want: []Change{{Rule: Storage, From: "v2", To: "v1", Breaking: true}, {
				Rule: Unconverted, Version: "v2", Path: "spec", Breaking: true,
				Why: "is not in v1, in which objects are stored: it is lost at the next write",
			}},
		},
		"StatusGone": {reason: "Controllers write the status through its subresource.", after: version(1, "subresources", nil), want: v2(Subresource, "", "status", "")},
		"Selectable": {reason: "Queries with the field selector fail.", after: version(1, "selectableFields", nil), want: v2(Selectable, "spec.region", "", "")},
	}
}

// pair returns the definition before and after the change.
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

// A report must not change as long as its definitions do not, or each pass would write another comment.
func TestCompareIsStable(t *testing.T) {
	crd := func(rules ...string) *unstructured.Unstructured {
		all := make([]any, len(rules))
		for i, rule := range rules {
			all[i] = map[string]any{"rule": rule}
		}
		spec := map[string]any{"type": "object", "x-kubernetes-validations": all}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"spec": map[string]any{"versions": []any{map[string]any{"name": "v1", "schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": spec},
			}}}}},
		}}
	}
	many, none := crd("has(self.a)", "has(self.b)", "has(self.c)", "has(self.d)", "size(self) < 8"), crd("size(self) < 9")
	want := Compare(many, none)
	for range 20 {
		if diff := cmp.Diff(want, Compare(many, none)); diff != "" {
			t.Fatalf("Compare(...) again (-want +got):\n%s", diff)
		}
	}
}
