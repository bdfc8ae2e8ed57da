package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/fixtures/golden"
)

// These are the possible verdicts of a tool on a change.
const (
	breaks = "breaks"
	passes = "fine"
)

// refused is the field of a case whose definition the API server refuses.
const refused = "(refused)"

// An otherCase is a test case of another tool for CRDs, in a definition of ours.
type otherCase struct {
	tool, name string
	change     string // for the table
	// The schemas of spec, without its type. An empty after means that it equals before. The definition has one version, v1.
	before, after string
	edit          func(crd map[string]any) // edits the definition afterwards
	both          func(crd map[string]any) // edits both definitions, before edit
	theirs, ours  string
	why           string // the verdicts differ
	field         string // field of the objects that the API server's code tests; "-" if the change is not about objects
}

// secondVersion adds a version that is served but not stored, with a schema of its spec.
func secondVersion(schema string) func(crd map[string]any) {
	return func(crd map[string]any) {
		spec := at(crd, "spec")
		added := (&unstructured.Unstructured{Object: at(spec, "versions", 0)}).DeepCopy().Object
		added["name"], added["storage"] = "v2", false
		at(added, "schema", "openAPIV3Schema", "properties")["spec"] = specOf(schema)
		spec["versions"] = append(spec["versions"].([]any), added)
	}
}

func specOf(schema string) map[string]any {
	made := map[string]any{}
	if err := yaml.Unmarshal([]byte(schema), &made); err != nil {
		panic(err) // only a mistake in a case below
	}
	made["type"] = "object"
	return made
}

func clusterScoped(crd map[string]any) { at(crd, "spec")["scope"] = "Cluster" }

// statusWithoutSubresource adds the field status without the subresource.
func statusWithoutSubresource(crd map[string]any) {
	for i := range at(crd, "spec")["versions"].([]any) {
		at(crd, "spec", "versions", i, "schema", "openAPIV3Schema", "properties")["status"] = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
}

// storedTwo adds stored versions v1 and v2.
func storedTwo(crd map[string]any) {
	secondVersion("{}")(crd)
	crd["status"] = map[string]any{"storedVersions": []any{"v1", "v2"}}
}

func otherCases() []otherCase {
	const (
		crdify, checker, uptest, kapp = "crdify", "crd-schema-checker", "uptest crddiff", "kapp"
		mode                          = `{properties: {mode: {type: string, enum: [Managed, Unmanaged]}}}`
		withDefault                   = `{properties: {mode: {type: string, default: Managed}}}`
		text                          = `{properties: {mode: {type: string}}}`
		four                          = `{properties: {count: {type: integer}, s: {type: string}, l: {type: array, items: {type: string}}, m: {type: object, additionalProperties: {type: string}}}}`
		convention                    = "A convention of OpenShift for new fields. No object is refused, and no value is lost."
		newField                      = "{properties: {a: {type: string}"
		regex                         = `self.all(x, self.all(y, self.all(z, x == y || y != z)))`
	)
	limits := func(prefix string, n int) string {
		return fmt.Sprintf(`{properties: {count: {type: integer, %[1]simum: %[2]d}, s: {type: string, %[1]sLength: %[2]d}, l: {type: array, items: {type: string}, %[1]sItems: %[2]d}, m: {type: object, additionalProperties: {type: string}, %[1]sProperties: %[2]d}}}`, prefix, n)
	}
	// lists returns a schema with n lists. Each has a rule that stays within its own budget.
	lists := func(n int) string {
		var b strings.Builder
		b.WriteString("{properties: {mode: {type: string}")
		for i := range n {
			fmt.Fprintf(&b, `, list%d: {type: array, maxItems: 700, items: {type: string, maxLength: 8}, x-kubernetes-validations: [{rule: "self.all(x, self.all(y, x == y))"}]}`, i)
		}
		return b.String() + "}}"
	}
	pattern := func(p string) string { return fmt.Sprintf(`{properties: {mode: {type: string, pattern: %q}}}`, p) }
	const region, withoutRegion, renamed = `{required: [region], properties: {region: {type: string}, tags: {type: object, additionalProperties: {type: string}}}}`,
		`{properties: {tags: {type: object, additionalProperties: {type: string}}}}`,
		`{required: [place], properties: {place: {type: string}, tags: {type: object, additionalProperties: {type: string}}}}`
	return []otherCase{
		{tool: crdify, name: "default value changed", change: "a default changes", before: withDefault, after: `{properties: {mode: {type: string, default: Unmanaged}}}`, theirs: breaks, ours: passes, field: "mode", why: "Stored objects keep their value. The preview is *look*: new objects get the new default."},
		{tool: crdify, name: "default value net new", change: "a default is added", before: text, after: withDefault, theirs: breaks, ours: passes, field: "mode", why: "The API server still accepts every object. The preview is *look*."},
		{tool: crdify, name: "default value removed", change: "a default is removed from an optional field", before: withDefault, after: text, theirs: breaks, ours: passes, field: "mode", why: "The API server still accepts every object. The preview is *look*."},
		{tool: crdify, name: "description changed", change: "a description changes", before: `{properties: {mode: {type: string, description: One.}}}`, after: `{properties: {mode: {type: string, description: Another.}}}`, theirs: breaks, ours: passes, field: "mode", why: "A description has no effect on objects."},
		{tool: crdify, name: "enum net new", change: "an enum is added", before: text, after: mode, theirs: breaks, ours: breaks, field: "mode"},
		{tool: crdify, name: "enum value added", change: "an enum gains a value", before: `{properties: {mode: {type: string, enum: [Managed]}}}`, after: mode, theirs: breaks, ours: passes, field: "mode", why: "The API server still accepts every object."},
		{tool: crdify, name: "enum value removed", change: "an enum loses a value", before: mode, after: `{properties: {mode: {type: string, enum: [Managed]}}}`, theirs: breaks, ours: breaks, field: "mode"},
		{tool: crdify, name: "existing field removed", change: "an optional field is removed", before: mode, after: `{properties: {}}`, theirs: breaks, ours: breaks, field: "mode"},
		{tool: crdify, name: "max net new", change: "maximum, maxLength, maxItems and maxProperties are added", before: four, after: limits("max", 10), theirs: breaks, ours: breaks, field: "count"},
		{tool: crdify, name: "max value decreased", change: "these limits become lower", before: limits("max", 10), after: limits("max", 5), theirs: breaks, ours: breaks, field: "l"},
		{tool: crdify, name: "min net new", change: "minimum, minLength, minItems and minProperties are added", before: four, after: limits("min", 2), theirs: breaks, ours: breaks, field: "s"},
		{tool: crdify, name: "min value increased", change: "these limits become higher", before: limits("min", 2), after: limits("min", 4), theirs: breaks, ours: breaks, field: "m"},
		{tool: crdify, name: "multiple incompatible", change: "the scope changes, a field becomes required, a minimum rises", before: `{properties: {count: {type: integer, minimum: 1}}}`, after: `{required: [count], properties: {count: {type: integer, minimum: 10}}}`, edit: clusterScoped, theirs: breaks, ours: breaks, field: "count"},
		{tool: crdify, name: "nullable added", change: "null is allowed", before: text, after: `{properties: {mode: {type: string, nullable: true}}}`, theirs: breaks, ours: passes, field: "mode", why: "The API server still accepts every object."},
		{tool: crdify, name: "nullable removed", change: "null is not allowed any more", before: `{properties: {mode: {type: string, nullable: true}}}`, after: text, theirs: breaks, ours: breaks, field: "mode"},
		{tool: crdify, name: "pattern added", change: "a pattern is added", before: text, after: pattern("^[a-z]+$"), theirs: breaks, ours: breaks, field: "mode"},
		{tool: crdify, name: "pattern changed", change: "a pattern changes", before: pattern("^[a-z]+$"), after: pattern("^[A-Z]+$"), theirs: breaks, ours: breaks, field: "mode"},
		{tool: crdify, name: "pattern removed", change: "a pattern is removed", before: pattern("^[a-z]+$"), after: text, theirs: breaks, ours: passes, field: "mode", why: "The API server still accepts every object."},
		{tool: crdify, name: "required field added", change: "a field with a default becomes required", before: withDefault, after: `{required: [mode], properties: {mode: {type: string, default: Managed}}}`, theirs: breaks, ours: passes, field: "mode", why: "The API server fills the default in before it validates."},
		{tool: crdify, name: "scope changed", change: "the scope changes", before: text, edit: clusterScoped, theirs: breaks, ours: breaks, field: "-"},
		{tool: crdify, name: "type changed", change: "an integer becomes a string", before: `{properties: {count: {type: integer, format: int32}}}`, after: `{properties: {count: {type: string}}}`, theirs: breaks, ours: breaks, field: "count"},
		{tool: crdify, name: "valid changes", change: "optional fields are added, with an enum and with required fields of their own", before: text, after: newField + `, mode: {type: string}, where: {type: string, enum: [East, West]}, config: {type: object, required: [b], properties: {b: {type: string}}}}}`, theirs: passes, ours: passes, field: "mode"},

		{tool: checker, name: "no change of a type", change: "nothing changes", before: text, after: text, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "type, field added", change: "a field is added", before: text, after: newField + `, mode: {type: string}}}`, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "type changed", change: "a string becomes an integer", before: text, after: `{properties: {mode: {type: integer}}}`, theirs: breaks, ours: breaks, field: "mode"},
		{tool: checker, name: "enum gains", change: "an enum gains a value", before: `{properties: {mode: {type: string, enum: [Managed]}}}`, after: mode, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "enum in a new version", change: "a version with the same enum is added", before: mode, edit: secondVersion(mode), theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "enum in another order", change: "an enum has another order", before: mode, after: `{properties: {mode: {type: string, enum: [Unmanaged, Managed]}}}`, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "enum loses", change: "an enum loses a value", before: mode, after: `{properties: {mode: {type: string, enum: [Unmanaged]}}}`, theirs: breaks, ours: breaks, field: "mode"},
		{tool: checker, name: "field removed", change: "an object with a required field is removed", before: `{properties: {policy: {type: object, required: [name], properties: {name: {type: string}}}}}`, after: `{properties: {}}`, theirs: breaks, ours: breaks, field: "policy"},
		{tool: checker, name: "field only in one version", change: "nothing changes; two versions have other fields", before: text, both: secondVersion(`{properties: {mode: {type: string}, a: {type: string}}}`), theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "optional field in new items", change: "a list of objects is added", before: text, after: `{properties: {mode: {type: string}, list: {type: array, items: {type: object, properties: {a: {type: string}}}}}}`, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "required field in new items", change: "a list is added whose items have a required field", before: text, after: `{properties: {mode: {type: string}, list: {type: array, items: {type: object, required: [a], properties: {a: {type: string}}}}}}`, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "required field below a new parent", change: "an optional object with a required field is added", before: text, after: `{properties: {mode: {type: string}, parent: {type: object, nullable: true, required: [child], properties: {child: {type: object}}}}}`, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "required list below a new parent", change: "an optional object with a required list is added", before: text, after: `{properties: {mode: {type: string}, parent: {type: object, required: [list], properties: {list: {type: array, minItems: 1, items: {type: string}}}}}}`, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "required below a new grandparent", change: "an optional object with an object with a required field is added", before: text, after: `{properties: {mode: {type: string}, grand: {type: object, properties: {parent: {type: object, required: [child], properties: {child: {type: object}}}}}}}`, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "same requirements twice", change: "nothing changes; allOf demands what the schema demands", before: `{required: [mode], allOf: [{required: [mode]}], properties: {mode: {type: string}}}`, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "list with minLength", change: "an optional list with minLength is added", before: text, after: `{properties: {mode: {type: string}, list: {type: array, minLength: 1, items: {type: string}}}}`, theirs: breaks, ours: passes, field: "mode", why: "The list is optional, and minLength has no effect on lists."},
		{tool: checker, name: "new required parent", change: "a required object is added", before: text, after: `{required: [parent], properties: {mode: {type: string}, parent: {type: object}}}`, theirs: breaks, ours: breaks, field: "mode"},
		{tool: checker, name: "new required parent with a list", change: "a required object with a list is added", before: text, after: `{required: [parent], properties: {mode: {type: string}, parent: {type: object, nullable: true, properties: {list: {type: array, items: {type: object}}}}}}`, theirs: breaks, ours: breaks, field: "mode"},
		{tool: checker, name: "required in items of a list", change: "items of a list get a required field", before: `{properties: {list: {type: array, items: {type: object}}}}`, after: `{properties: {list: {type: array, items: {type: object, required: [a], properties: {a: {type: object}}}}}}`, theirs: breaks, ours: breaks, field: "list"},
		{tool: checker, name: "required in an optional parent", change: "an optional object gets a required field", before: `{properties: {parent: {type: object}}}`, after: `{properties: {parent: {type: object, required: [child], properties: {child: {type: object}}}}}`, theirs: breaks, ours: breaks, field: "parent"},
		{tool: checker, name: "rule that does not compile", change: "a field is added with a rule that does not compile", before: text, after: `{properties: {mode: {type: string}, list: {type: array, items: {type: string}, x-kubernetes-validations: [{rule: "self.all(x,"}]}}}`, theirs: breaks, ours: breaks, field: refused},
		{tool: checker, name: "rule over its budget", change: "a field is added with a rule that costs too much", before: text, after: `{properties: {mode: {type: string}, list: {type: array, items: {type: string}, x-kubernetes-validations: [{rule: "` + regex + `"}]}}}`, theirs: breaks, ours: breaks, field: refused},
		{tool: checker, name: "rule within its budget", change: "a field is added with a rule that is cheap enough", before: text, after: `{properties: {mode: {type: string}, list: {type: array, maxItems: 8, items: {type: string, maxLength: 16}, x-kubernetes-validations: [{rule: "` + regex + `"}]}}}`, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "rules over the budget of all", change: "fields are added whose rules cost too much together", before: text, after: lists(40), theirs: breaks, ours: breaks, field: refused},
		{tool: checker, name: "no rules", change: "a list without rules is added", before: text, after: `{properties: {mode: {type: string}, list: {type: array, items: {type: object}}}}`, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "status without its subresource", change: "a status is added without the subresource", before: text, edit: statusWithoutSubresource, theirs: breaks, ours: passes, field: "mode", why: convention},
		{tool: checker, name: "status was without its subresource", change: "nothing changes; the status has no subresource", before: text, both: statusWithoutSubresource, theirs: passes, ours: passes, field: "mode"},
		{tool: checker, name: "new boolean", change: "a boolean is added", before: text, after: `{properties: {mode: {type: string}, a: {type: boolean}}}`, theirs: breaks, ours: passes, field: "mode", why: convention},
		{tool: checker, name: "new float", change: "a number is added", before: text, after: `{properties: {mode: {type: string}, a: {type: number}}}`, theirs: breaks, ours: passes, field: "mode", why: convention},
		{tool: checker, name: "new unsigned integer", change: "an integer with format uint is added", before: text, after: `{properties: {mode: {type: string}, a: {type: integer, format: uint}}}`, theirs: breaks, ours: passes, field: "mode", why: convention},
		{tool: checker, name: "new map", change: "a map is added", before: text, after: `{properties: {mode: {type: string}, a: {type: object, additionalProperties: {type: string}}}}`, theirs: breaks, ours: passes, field: "mode", why: convention},
		{tool: checker, name: "new list without a type", change: "a list without list-type is added", before: text, after: `{properties: {mode: {type: string}, a: {type: array, items: {type: object}}}}`, theirs: breaks, ours: passes, field: "mode", why: convention},
		{tool: checker, name: "new conditions without keys", change: "conditions without list-map-keys are added", before: text, after: `{properties: {mode: {type: string}, conditions: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}}}}}}`, theirs: breaks, ours: passes, field: "mode", why: convention},

		{tool: uptest, name: "identical", change: "nothing changes", before: region, after: region, theirs: passes, ours: passes, field: "region"},
		{tool: uptest, name: "new optional field", change: "an optional field is added", before: region, after: strings.Replace(region, "properties: {", "properties: {a: {type: string}, ", 1), theirs: passes, ours: passes, field: "region"},
		{tool: uptest, name: "new required field", change: "a required field is added", before: withoutRegion, after: region, theirs: breaks, ours: breaks, field: "tags"},
		{tool: uptest, name: "new enum constant", change: "an enum gains a value", before: `{properties: {mode: {type: string, enum: [Managed]}}}`, after: mode, theirs: passes, ours: passes, field: "mode"},
		{tool: uptest, name: "enum constant removed", change: "an enum loses a value", before: mode, after: `{properties: {mode: {type: string, enum: [Managed]}}}`, theirs: breaks, ours: breaks, field: "mode"},
		{tool: uptest, name: "type changed", change: "a string becomes a number", before: text, after: `{properties: {mode: {type: number}}}`, theirs: breaks, ours: breaks, field: "mode"},
		{tool: uptest, name: "type changed in another version", change: "a string becomes a number in a version that is not stored", before: text, both: secondVersion(text), edit: func(crd map[string]any) {
			at(crd, "spec", "versions", 1, "schema", "openAPIV3Schema", "properties", "spec", "properties", "mode")["type"] = "number"
		}, theirs: breaks, ours: breaks, field: "-"},
		{tool: uptest, name: "required field removed", change: "a required field is removed", before: region, after: withoutRegion, theirs: breaks, ours: breaks, field: "region"},
		{tool: uptest, name: "optional field removed", change: "an optional map is removed", before: region, after: `{required: [region], properties: {region: {type: string}}}`, theirs: breaks, ours: breaks, field: "tags"},
		{tool: uptest, name: "required field renamed", change: "a required field gets another name", before: region, after: renamed, theirs: breaks, ours: breaks, field: "region"},
		{tool: uptest, name: "optional field renamed", change: "an optional map gets another name", before: region, after: strings.Replace(region, "tags:", "labels:", 1), theirs: breaks, ours: breaks, field: "tags"},
		{tool: uptest, name: "versions alike", change: "a version is added that is as the one before", before: text, edit: secondVersion(text), theirs: passes, ours: passes, field: "mode"},
		{tool: uptest, name: "versions that differ", change: "a version is added with another type of a field", before: text, edit: secondVersion(`{properties: {mode: {type: number}}}`), theirs: breaks, ours: breaks, field: "mode"},

		{tool: kapp, name: "same scope", change: "nothing changes", before: text, theirs: passes, ours: passes, field: "mode"},
		{tool: kapp, name: "scope changed", change: "the scope changes", before: text, edit: clusterScoped, theirs: breaks, ours: breaks, field: "-"},
		{tool: kapp, name: "no stored versions", change: "a version is added, and nothing is stored", before: text, edit: secondVersion(text), theirs: passes, ours: passes, field: "mode"},
		{tool: kapp, name: "stored versions stay", change: "a version is added, and stored versions stay", before: text, both: storedTwo, theirs: passes, ours: passes, field: "mode"},
		{tool: kapp, name: "stored version removed", change: "a version is removed in which objects are stored", before: text, both: storedTwo, edit: func(crd map[string]any) {
			spec := at(crd, "spec")
			spec["versions"] = spec["versions"].([]any)[:1]
		}, theirs: breaks, ours: breaks, field: "-"},
	}
}

// pair returns the definition before and after the change.
func (c otherCase) pair() (before, after *unstructured.Unstructured) {
	made := func(schema string, edits ...func(map[string]any)) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "buckets.example.org"},
			"spec": map[string]any{
				"group": "example.org", "scope": "Namespaced", "names": map[string]any{"kind": "Bucket", "listKind": "BucketList", "plural": "buckets", "singular": "bucket"},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
					"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": specOf(schema)}},
				}}},
			},
		}}
		for _, edit := range edits {
			if edit != nil {
				edit(u.Object)
			}
		}
		return u.DeepCopy() // with numbers as in JSON
	}
	return made(c.before, c.both), made(cmp.Or(c.after, c.before), c.both, c.edit)
}

// TestCasesOfOtherTools runs the test cases of crdify, OpenShift's crd-schema-checker, uptest's crddiff and kapp's preflight check.
// The API server's own code decides which verdict is right. other-tools.md has the table.
func TestCasesOfOtherTools(t *testing.T) {
	cases := otherCases()
	var table strings.Builder
	table.WriteString("# Cases of other tools\n\n<!-- Written by: go test ./render/schema -run TestCasesOfOtherTools -update -->\n\nOther tools that compare CRDs have test cases. The test repeats these cases with definitions of its own, and compares the results with\nHeadgate. The code of the API server decides which result is right: a change breaks if the API server refuses an object that it\naccepted before, or drops a value of it.\n")
	for _, tool := range []string{"crdify", "crd-schema-checker", "uptest crddiff", "kapp"} {
		all, differ := 0, 0
		var rows strings.Builder
		for _, c := range cases {
			if c.tool != tool {
				continue
			}
			all++
			why := "–"
			if c.theirs != c.ours {
				differ++
				why = c.why
			}
			fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", c.change, c.theirs, c.ours, why)
		}
		fmt.Fprintf(&table, "\n## %[1]s: %[2]d cases, %[3]d judged differently\n\n| change | %[1]s | Headgate | why |\n|---|---|---|---|\n%[4]s", tool, all, differ, rows.String())
	}
	golden.Compare(t, "other-tools.md", table.String())

	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.tool+"/"+c.name, " ", "_"), func(t *testing.T) {
			before, after := c.pair()
			difference := Compare(before, after)
			got := passes
			if len(difference.Breaking()) > 0 {
				got = breaks
			}
			if got != c.ours || (c.theirs != c.ours) != (c.why != "") {
				t.Errorf("%s: it %s, want %s (%s: %s, because %q): %v", c.change, got, c.ours, c.tool, c.theirs, c.why, difference.Changes)
			}
			if refused := Refusals(t.Context(), before); len(refused) > 0 {
				t.Errorf("the API server refuses the definition before: %v", refused)
			}
			switch is := Refusals(t.Context(), after); {
			case (c.field == refused) != (len(is) > 0):
				t.Errorf("the API server refuses the definition afterwards: %v", is)
			case c.field == refused || c.field == "-":
				return
			}
			m := mutation{path: []string{"spec", c.field}}
			witness := m.witness(t.Context(), before, after)
			if witness == nil && m.tried == 0 {
				t.Errorf("the API server's code saw no object with spec.%s", c.field)
			}
			if diff := gocmp.Diff(c.ours == breaks, witness != nil); diff != "" {
				t.Errorf("%s: the API server's code finds %v", c.change, witness)
			}
		})
	}
	if !slices.ContainsFunc(cases, func(c otherCase) bool { return c.theirs != c.ours }) {
		t.Error("no verdict differs, so the test shows nothing")
	}
}
