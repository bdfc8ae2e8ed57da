package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The judge must treat an object exactly like the API server's own libraries.
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
	all := func(edits ...func(map[string]any)) func(map[string]any) {
		return func(crd map[string]any) {
			for _, edit := range edits {
				edit(crd)
			}
		}
	}
	root := func(keyword string, value any) func(map[string]any) {
		return func(crd map[string]any) {
			at(crd, "spec", "versions", 1, "schema", "openAPIV3Schema")[keyword] = value
		}
	}
	object := func(properties map[string]any, more ...any) map[string]any {
		made := map[string]any{"type": "object", "properties": properties}
		for i := 0; i < len(more); i += 2 {
			made[more[i].(string)] = more[i+1]
		}
		return made
	}
	text, number := map[string]any{"type": "string"}, map[string]any{"type": "integer"}
	ports := func(key string) func(map[string]any) {
		return all(
			put("x-kubernetes-list-type", "map", "properties", "rules"),
			put("x-kubernetes-list-map-keys", []any{key}, "properties", "rules"),
			put("required", []any{key}, "properties", "rules", "items"),
		)
	}
	pod := put("pod", object(map[string]any{"spec": object(nil, "x-kubernetes-preserve-unknown-fields", true)}, "x-kubernetes-embedded-resource", true), "properties")
	podWithout := put("pod", object(map[string]any{"spec": object(nil, "x-kubernetes-preserve-unknown-fields", true)}), "properties")
	podFree := put("pod", object(nil, "x-kubernetes-preserve-unknown-fields", true), "properties")
	intOrString := put("size", map[string]any{"x-kubernetes-int-or-string": true}, "properties")
	withoutRules := put("x-kubernetes-validations", nil)
	one := func(rule map[string]any) func(map[string]any) { return put("x-kubernetes-validations", []any{rule}) }
	gone := func(crd map[string]any) {
		moved(crd)
		at(crd, "spec")["versions"] = at(crd, "spec")["versions"].([]any)[:1]
	}
	bareVersion := func(crd map[string]any) {
		spec := at(crd, "spec")
		spec["versions"] = append(spec["versions"].([]any), map[string]any{
			"name": "v3", "served": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
		})
	}
	cases := map[string]struct {
		reason         string
		before, after  func(map[string]any)
		spec           string
		loses, refused []string
	}{
		"Same":             {reason: "Nothing changes.", spec: fine},
		"FieldOfIt":        {reason: "The value of a removed field is dropped.", spec: fine, after: put("note", nil, "properties"), loses: []string{"spec.note"}},
		"FieldOfOthers":    {reason: "The object does not set the removed field.", spec: `{region: south}`, after: put("note", nil, "properties")},
		"FieldInLists":     {reason: "The removed field is reported once for all items.", spec: `{region: south, rules: [{host: a}, {host: b}]}`, after: put("host", nil, "properties", "rules", "items", "properties"), loses: []string{"spec.rules[].host"}},
		"Type":             {reason: "An integer is not a string.", spec: fine, after: put("type", "string", "properties", "size"), refused: []string{"spec.size: invalid value"}},
		"TypeOfOthers":     {reason: "The object does not set the field with the new type.", spec: `{region: south}`, before: withoutRules, after: all(withoutRules, put("type", "string", "properties", "size"))},
		"Enum":             {reason: "The value south is no longer allowed.", spec: fine, after: put("enum", []any{"north"}, "properties", "region"), refused: []string{"spec.region: unsupported value"}},
		"EnumOfOthers":     {reason: "The value north is still allowed.", spec: `{region: north}`, after: put("enum", []any{"north"}, "properties", "region")},
		"Required":         {reason: "The object lacks the newly required field.", spec: `{region: south}`, after: put("required", []any{"region", "size"}), refused: []string{"spec.size: required value"}},
		"RequiredFilledIn": {reason: "A default is set before required fields are checked.", spec: `{size: 3}`, after: put("required", []any{"region"})},
		"ListSet":          {reason: "A set must not contain equal items.", spec: `{region: south, rules: [{port: 1}, {port: 1}]}`, after: put("x-kubernetes-list-type", "set", "properties", "rules"), refused: []string{"spec.rules[]: duplicate value"}},
		"Rule":             {reason: "A new CEL rule refuses the object.", spec: fine, after: rule("self.size < 3"), refused: []string{"spec: invalid value"}},
		"RuleThatHolds":    {reason: "The object satisfies the new CEL rule.", spec: fine, after: rule("self.size < 4")},
		"Transition":       {reason: "A transition rule holds for an unchanged object.", spec: fine, after: rule("self == oldSelf")},
		"AlreadyRefused":   {reason: "The object was already refused before the update.", spec: `{region: west}`, after: put("note", nil, "properties")},
		"Status":           {reason: "A controller writes the status again.", spec: fine, before: status, after: func(crd map[string]any) { statusWithout(crd) }},
		"StorageMoves":     {reason: "The new storage version v1 has no spec.", spec: fine, after: moved, loses: []string{"spec"}},
		"VersionServed":    {reason: "The newly served version v3 has no spec, so an update in it drops the spec.", spec: fine, after: bareVersion, loses: []string{"spec"}},
		"StorageConverted": {reason: "The webhook converts the object.", spec: fine, after: webhook},
		"VersionGone":      {reason: "A field that only the old version declares is lost.", spec: fine, after: gone, loses: []string{"spec"}},

		"UnknownFieldsKept":    {reason: "Unknown fields are kept before and after the update.", spec: `{region: south, free: {any: {thing: [1]}}}`, after: put("description", "x", "properties", "free")},
		"UnknownFieldsDropped": {reason: "Unknown fields are no longer kept.", spec: `{region: south, free: {any: {thing: [1]}}}`, after: put("x-kubernetes-preserve-unknown-fields", nil, "properties", "free"), loses: []string{"spec.free.any"}},
		"UnknownFieldsAtOnce": {
			reason: "The whole definition kept unknown fields before.", spec: `{region: south, other: 1}`, loses: []string{"spec.other"},
			before: func(crd map[string]any) { at(crd, "spec")["preserveUnknownFields"] = true }, after: func(map[string]any) {},
		},
		"UnknownFieldsDeclared": {
			reason: "An unknown field may now be a declared number.", spec: `{region: south, free: {any: thing}}`,
			after:   put("free", object(map[string]any{"any": number}, "x-kubernetes-preserve-unknown-fields", true), "properties"),
			refused: []string{"spec.free.any: invalid value"},
		},
		"IntOrString":         {reason: "The new type accepts both integers and strings.", spec: fine, before: withoutRules, after: all(withoutRules, intOrString)},
		"NoStringAnyMore":     {reason: "The object contains a string, which is no longer allowed.", spec: `{region: south, size: "3"}`, before: all(withoutRules, intOrString), after: withoutRules, refused: []string{"spec.size: invalid value"}},
		"NoStringOfIntegers":  {reason: "The object contains an integer, which is still allowed.", spec: `{region: south, size: 3}`, before: all(withoutRules, intOrString), after: withoutRules},
		"DefaultThatRequires": {reason: "The default is an object without a required field.", spec: `{region: south}`, refused: []string{"spec.access.owner: required value"}, after: put("access", object(map[string]any{"owner": text}, "required", []any{"owner"}, "default", map[string]any{}), "properties")},
		"DefaultOfAnother":    {reason: "The default is an object with the required field.", spec: `{region: south}`, after: put("access", object(map[string]any{"owner": text}, "required", []any{"owner"}, "default", map[string]any{"owner": "me"}), "properties")},
		"DefaultForNull":      {reason: "A default replaces the null.", spec: `{region: south, note: null}`, after: put("note", map[string]any{"type": "string", "default": "x"}, "properties"), loses: []string{"spec.note"}},
		"NullableOff":         {reason: "The null is dropped.", spec: `{region: south, note: null}`, after: put("nullable", nil, "properties", "note"), loses: []string{"spec.note"}},
		"NullableOffRequired": {
			reason: "The null is dropped, so the required field is missing.", spec: `{region: south, note: null}`, after: all(put("nullable", nil, "properties", "note"), put("required", []any{"note"})),
			loses: []string{"spec.note"}, refused: []string{"spec.note: required value"},
		},
		"NullableOffOfOthers": {reason: "The object has a value instead of null.", spec: fine, after: put("nullable", nil, "properties", "note")},
		"NullInList": {
			reason: "A null in a list is not dropped.", spec: `{region: south, rules: [null]}`, refused: []string{"spec.rules[]: invalid value"},
			before: put("nullable", true, "properties", "rules", "items"), after: func(map[string]any) {},
		},
		"Embedded":          {reason: "The embedded object is complete.", spec: `{region: south, pod: {apiVersion: v1, kind: Pod, metadata: {name: a, creationTimestamp: null}, spec: {a: 1}}}`, before: podFree, after: pod},
		"EmbeddedAnything":  {reason: "The embedded value is not an API object.", spec: `{region: south, pod: {spec: {a: 1}}}`, before: podFree, after: pod, refused: []string{"spec.pod.apiVersion: required value", "spec.pod.kind: required value"}},
		"EmbeddedUnknown":   {reason: "Metadata of an embedded object keeps only known fields.", spec: `{region: south, pod: {apiVersion: v1, kind: Pod, metadata: {name: a, more: b}}}`, before: podFree, after: pod, loses: []string{"spec.pod.metadata.more"}},
		"EmbeddedMalformed": {reason: "Labels must be strings.", spec: `{region: south, pod: {apiVersion: v1, kind: Pod, metadata: {labels: {a: 1}}}}`, before: podFree, after: pod, loses: []string{"spec.pod.metadata.labels"}},
		"EmbeddedNoMore":    {reason: "Without embedding, the type and metadata are undeclared fields.", spec: `{region: south, pod: {apiVersion: v1, kind: Pod, spec: {a: 1}}}`, before: pod, after: podWithout, loses: []string{"spec.pod.apiVersion", "spec.pod.kind"}},
		"KeysCollide":       {reason: "Two items now have the same key.", spec: `{region: south, rules: [{port: 1, host: a}, {port: 1, host: b}]}`, after: ports("port"), refused: []string{"spec.rules[]: duplicate value"}},
		"KeysDiffer":        {reason: "The items have different keys.", spec: `{region: south, rules: [{port: 1, host: a}, {port: 1, host: b}]}`, after: ports("host")},
		"KeysFilledIn": {
			reason: "The default of a missing key equals another item's key.", spec: `{region: south, rules: [{host: a}, {port: 1, host: b}]}`, refused: []string{"spec.rules[]: duplicate value"},
			after: all(ports("port"), put("default", int64(1), "properties", "rules", "items", "properties", "port")),
		},
		"KeysMissing":          {reason: "An item lacks its key.", spec: `{region: south, rules: [{host: a}]}`, after: ports("port"), refused: []string{"spec.rules[].port: required value"}},
		"TransitionOnCreation": {reason: "The rule applies only to new objects.", spec: fine, after: one(map[string]any{"rule": "oldSelf.hasValue() || self.size == 1", "optionalOldSelf": true})},
		"TransitionAlways":     {reason: "The rule requires every write to change the value, even the writes of controllers.", spec: fine, after: one(map[string]any{"rule": "self.size > oldSelf.size"}), refused: []string{"spec: invalid value: failed rule: self.size > oldSelf.size"}},
		"RuleOfItsOwnWords":    {reason: "The message must not show the author an object's values.", spec: fine, after: one(map[string]any{"rule": "self.size < 3", "messageExpression": "'failed rule ' + self.region"}), refused: []string{"spec: invalid value: failed rule: self.size < 3"}},
		"RuleWithoutEnd":       {reason: "The rule exceeds the API server's cost limit, too.", spec: `{region: south, free: {}, rules: [` + strings.Repeat("{host: a},", 300) + `]}`, after: one(map[string]any{"rule": "self.rules.all(a, self.rules.all(b, self.rules.all(c, a.host == b.host && b.host == c.host)))"}), refused: []string{"spec: invalid value"}},
		"OtherRuleAsWell": {
			reason: "Another rule refused the object before, and a new rule refuses it now.", spec: `{region: south, size: 9}`, refused: []string{"spec: invalid value: failed rule: self.size < 7"},
			after: one(map[string]any{"rule": "self.size < 7"}),
		},
		"RefusedElsewhere": {reason: "The object was refused for its region only, and the API server skips an unchanged region, so the new rule counts.", spec: `{region: west, size: 3}`, after: rule("self.size < 3"), refused: []string{"spec: invalid value"}},
		"OneItemMore":      {reason: "One port was refused before, and another one is refused now, too.", spec: `{region: south, rules: [{port: 9}, {port: 5}]}`, before: put("port", map[string]any{"type": "integer", "maximum": int64(8)}, "properties", "rules", "items", "properties"), after: put("port", map[string]any{"type": "integer", "maximum": int64(4)}, "properties", "rules", "items", "properties"), refused: []string{"spec.rules[].port: invalid value"}},
		"Name": {reason: "A schema may restrict names.", spec: fine, after: func(crd map[string]any) {
			at(crd, "spec", "versions", 1, "schema", "openAPIV3Schema", "properties")["metadata"] = object(map[string]any{"name": map[string]any{"type": "string", "minLength": int64(2)}})
		}, refused: []string{"metadata.name: invalid value"}},
		"StatusRule": {reason: "A rule on the status concerns only the status.", spec: fine, before: status, after: all(status, func(crd map[string]any) {
			at(crd, "spec", "versions", 1, "schema", "openAPIV3Schema", "properties", "status")["x-kubernetes-validations"] = []any{map[string]any{"rule": "self.phase != 'Ready'"}}
		})},
		"StatusRequired": {reason: "A controller sets the newly required status.", spec: fine, after: all(status, root("required", []any{"status"})), before: status},
		"StatusDropped":  {reason: "The new definition no longer declares the status.", spec: fine, before: status, after: func(map[string]any) {}},
		"StatusOfAnotherType": {reason: "A controller writes the status again.", spec: fine, before: status, after: func(crd map[string]any) {
			at(crd, "spec", "versions", 1, "schema", "openAPIV3Schema", "properties")["status"] = map[string]any{"type": "array", "items": number}
		}},
		"Huge":     {reason: "A text without a length limit may be arbitrarily large.", spec: `{region: south, tags: {` + strings.Repeat("x", 200) + `: ` + strings.Repeat("y", 1<<20) + `}}`, after: put("additionalProperties", map[string]any{"type": "string", "maxLength": int64(1 << 10)}, "properties", "tags"), refused: []string{"spec.tags." + strings.Repeat("x", 200) + ": too long"}},
		"HugeList": {reason: "Every item is checked, and the result is one message.", spec: `{region: south, rules: [` + strings.Repeat("{host: a, port: 1},", 5000) + `]}`, before: put("maxItems", nil, "properties", "rules"), after: all(put("maxItems", nil, "properties", "rules"), put("host", nil, "properties", "rules", "items", "properties")), loses: []string{"spec.rules[].host"}},
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
				err = o.UnmarshalJSON(read) // with integers, as read from an API server
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

// Invalid input is an error, and the result of a conversion webhook is unknown.
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
		"Unstored":  func(crd map[string]any) { at(crd, "spec", "versions", 1)["storage"] = false },
	} {
		before, after := ruleCase{after: after}.pair(t)
		if _, err := NewJudge(before, after, "v2"); err == nil {
			t.Errorf("%s: it judges", name)
		}
	}
	same, _ := ruleCase{}.pair(t)
	if _, err := NewJudge(same, same, "v3"); err == nil {
		t.Error("it judges objects of a version that does not exist")
	}
}
