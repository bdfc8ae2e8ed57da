package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What an API server makes of an object is what its own libraries make of it.
func TestJudge(t *testing.T) {
	const fine = `{region: south, size: 3, name: ab, note: x, free: {any: thing}, rules: [{port: 80, host: a}], tags: {a: b}}`
	moved := func(crd map[string]any) {
		at(crd, "spec", "versions", 0)["storage"], at(crd, "spec", "versions", 1)["storage"] = true, false
	}
	webhook := func(crd map[string]any) {
		moved(crd)
		at(crd, "spec")["conversion"] = map[string]any{"strategy": "Webhook"}
	}
	rule := func(rule string) func(map[string]any) {
		return put("x-kubernetes-validations", []any{map[string]any{"rule": rule, "message": "no"}})
	}
	status := func(crd map[string]any) {
		at(crd, "spec", "versions", 1, "schema", "openAPIV3Schema", "properties")["status"] = map[string]any{"type": "object", "properties": map[string]any{"phase": map[string]any{"type": "string"}}}
	}
	statusWithout := func(crd map[string]any) {
		at(crd, "spec", "versions", 1, "schema", "openAPIV3Schema", "properties")["status"] = map[string]any{"type": "object", "required": []any{"other"}}
	}
	cases := map[string]struct {
		reason         string
		before, after  func(map[string]any)
		spec           string
		loses, refused []string
	}{
		"Same":             {reason: "Nothing changes.", spec: fine},
		"FieldOfIt":        {reason: "Its value is dropped.", spec: fine, after: put("note", nil, "properties"), loses: []string{"spec.note"}},
		"FieldOfOthers":    {reason: "It does not set the field.", spec: `{region: south}`, after: put("note", nil, "properties")},
		"FieldInLists":     {reason: "One word for all items.", spec: `{region: south, rules: [{host: a}, {host: b}]}`, after: put("host", nil, "properties", "rules", "items", "properties"), loses: []string{"spec.rules[].host"}},
		"Type":             {reason: "3 is no string.", spec: fine, after: put("type", "string", "properties", "size"), refused: []string{"spec.size: invalid value"}},
		"TypeOfOthers":     {reason: "It has none.", spec: `{region: south}`, after: put("type", "string", "properties", "size")},
		"Enum":             {reason: "south is refused.", spec: fine, after: put("enum", []any{"north"}, "properties", "region"), refused: []string{"spec.region: unsupported value"}},
		"EnumOfOthers":     {reason: "north is not.", spec: `{region: north}`, after: put("enum", []any{"north"}, "properties", "region")},
		"Required":         {reason: "It leaves that out.", spec: `{region: south}`, after: put("required", []any{"region", "size"}), refused: []string{"spec.size: required value"}},
		"RequiredFilledIn": {reason: "A default is filled in before that is looked at.", spec: `{size: 3}`, after: put("required", []any{"region"})},
		"ListSet":          {reason: "A set has no two of the same.", spec: `{region: south, rules: [{port: 1}, {port: 1}]}`, after: put("x-kubernetes-list-type", "set", "properties", "rules"), refused: []string{"spec.rules[]: duplicate value"}},
		"Rule":             {reason: "A rule in CEL refuses it.", spec: fine, after: rule("self.size < 3"), refused: []string{"spec: invalid value"}},
		"RuleThatHolds":    {reason: "It holds.", spec: fine, after: rule("self.size < 4")},
		"Transition":       {reason: "Nothing changes that could not change.", spec: fine, after: rule("self == oldSelf")},
		"AlreadyRefused":   {reason: "It was refused before, and the update is not why.", spec: `{region: west}`, after: put("note", nil, "properties")},
		"Status":           {reason: "A controller writes it again.", spec: fine, before: status, after: func(crd map[string]any) { statusWithout(crd) }},
		"StorageMoves":     {reason: "v1 has no spec.", spec: fine, after: moved, loses: []string{"spec"}},
		"StorageConverted": {reason: "The webhook converts.", spec: fine, after: webhook},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := ruleCase{before: tc.before, after: tc.after}.pair(t)
			if tc.after == nil {
				after = before.DeepCopy()
			}
			j, err := NewJudge(before, after, "v2")
			if err != nil {
				t.Fatal(err)
			}
			o := &unstructured.Unstructured{}
			text := "apiVersion: example.org/v2\nkind: Bucket\nmetadata: {name: a, namespace: default, labels: {a: b}}\nstatus: {phase: Ready}\nspec: " + tc.spec
			read, err := yaml.YAMLToJSON([]byte(text))
			if err == nil {
				err = o.UnmarshalJSON(read) // with integers, as they are read from an API server
			}
			if err != nil {
				t.Fatal(err)
			}
			loses, refused := j.Of(t.Context(), o)
			if diff := cmp.Diff([][]string{tc.loses, tc.refused}, [][]string{loses, refused}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nlost, and refused (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// What makes no sense is an error, and what only a webhook knows is not guessed.
func TestNoJudge(t *testing.T) {
	gone := func(crd map[string]any) {
		at(crd, "spec")["versions"] = at(crd, "spec")["versions"].([]any)[:1]
		at(crd, "spec", "versions", 0)["storage"] = true
		at(crd, "spec")["conversion"] = map[string]any{"strategy": "Webhook"}
	}
	for name, after := range map[string]func(map[string]any){
		"Malformed": put("maxLength", "long", "properties", "name"),
		"Converted": gone,
		"Unpruned":  func(crd map[string]any) { at(crd, "spec")["preserveUnknownFields"] = true },
	} {
		before, after := ruleCase{after: after}.pair(t)
		if _, err := NewJudge(before, after, "v2"); err == nil {
			t.Errorf("%s: it judges", name)
		}
	}
}
