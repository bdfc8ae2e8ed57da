package schema

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"headgate.dev/headgate/fixtures"
)

var (
	mutations = flag.Int("mutations", 400, "how many mutations TestDifferential judges; 10000 is the whole of it")
	firstSeed = flag.Uint64("seed", 0, "the first seed of TestDifferential")
	listing   = flag.Bool("listing", false, "TestDifferential lists false alarms")
)

// mostFalseAlarms is the maximum percentage of mutations that Compare may call breaking although no object shows it. Most of them
// are two limits of one field that imply each other, because a field of a mutation often has two.
const mostFalseAlarms = 1.0

// Differential mutates CRDs of real providers and judges how a user's path to Compare compares them. The API server's own code
// judges objects at the boundary of each change: a break is an object that was accepted and is now refused or loses a value. A break
// that is missed is a merge that destroys something. A reported break without such an object is a false alarm. shows reports whether
// the checks that users see agree about the object.
func Differential(t *testing.T, compare func(before, after *unstructured.Unstructured) Difference, shows func(before, after *unstructured.Unstructured, of Witness) error) {
	t.Helper()
	var originals []*unstructured.Unstructured
	for _, archive := range []string{"provider-kubernetes", "provider-helm", "provider-http", "provider-nop", "crossplane-core", "largest"} {
		files := fixtures.Largest(t)
		if archive != "largest" {
			files = fixtures.Corpus(t, archive)
		}
		all := definitions(t, files)
		for i, name := range slices.Sorted(maps.Keys(all)) {
			raw, err := json.Marshal(all[name].Object)
			if err != nil {
				t.Fatal(err)
			}
			if len(raw) < 60_000 && (archive != "largest" || i%20 == 0) {
				originals = append(originals, bare(all[name]))
			}
		}
	}
	t.Logf("%d CRDs", len(originals))
	judgedAll, breaking, untried := 0, 0, 0
	alarms, byRule, falseByRule := map[string]int{}, map[string]int{}, map[string]int{}
	for seed := *firstSeed; judgedAll < *mutations; seed++ {
		m := mutation{Rand: rand.New(rand.NewPCG(seed, 7)), crd: originals[seed%uint64(len(originals))]}
		before, after, ok := m.pair()
		if !ok || len(Refusals(t.Context(), before)) > 0 {
			continue
		}
		difference := compare(before, after)
		found := difference.Breaking()
		if refused := Refusals(t.Context(), after); len(refused) > 0 {
			if slices.ContainsFunc(refused, func(r Refusal) bool { return strings.Contains(r.Field, "validations[") }) && len(found) == 0 {
				t.Errorf("seed %d: %s at %v breaks a rule, and Compare finds %v: %v", seed, m.name, m.path, difference.Changes, refused)
				judgedAll++
			}
			continue // the API server refuses the update, and render/lint reports it
		}
		witness := m.witness(t.Context(), before, after)
		if witness == nil && m.tried == 0 {
			untried++ // the edits contradict each other, so every object is refused
			continue
		}
		judgedAll++
		for _, c := range found {
			byRule[string(c.Rule)]++
		}
		switch {
		case witness != nil && len(found) == 0:
			t.Errorf("seed %d: missed: %s at %v of %s\n%s\nCompare finds %v", seed, m.name, m.path, before.GetName(), witness.What, difference.Changes)
		case witness == nil && len(found) > 0:
			alarms[fmt.Sprintf("%s: %v", m.name, found)]++
			falseByRule[string(found[0].Rule)]++
			if *listing {
				t.Logf("seed %d: no object shows it: %s at %v of %s: %v; it was %.600s", seed, m.name, m.path, before.GetName(), found, asJSON(m.at(rootOf(before))))
			}
		case len(found) > 0:
			breaking++
			if err := shows(before, after, *witness); err != nil {
				t.Errorf("seed %d: %s at %v of %s: %s\nbut a check says: %v", seed, m.name, m.path, before.GetName(), witness.What, err)
			}
		}
	}
	count := 0
	for _, n := range alarms {
		count += n
	}
	t.Logf("%d mutations: %d break, %d false alarms; of %d more no object was taken before; breaking changes %v, false alarms %v", judgedAll, breaking, count, untried, byRule, falseByRule)
	if 100*float64(count) > mostFalseAlarms*float64(judgedAll) {
		t.Errorf("%d of %d mutations are false alarms, more than %v %%:\n%s", count, judgedAll, mostFalseAlarms, strings.Join(slices.Sorted(maps.Keys(alarms)), "\n"))
	}
	if breaking < judgedAll/5 {
		t.Errorf("only %d of %d mutations break something, so little is tested", breaking, judgedAll)
	}
}

// bare returns a CRD with only its storage version and without descriptions.
func bare(crd *unstructured.Unstructured) *unstructured.Unstructured {
	u := crd.DeepCopy()
	spec := object(u.Object["spec"])
	delete(spec, "conversion")
	all := versions(spec)
	v := all[stored(all)]
	for _, key := range []string{"subresources", "selectableFields", "additionalPrinterColumns", "deprecated", "deprecationWarning"} {
		delete(v, key)
	}
	spec["versions"] = []any{v}
	withoutWords(schemaOf(v))
	delete(object(schemaOf(v)["properties"]), "status")
	return u
}

func withoutWords(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, isText := v["description"].(string); isText {
			delete(v, "description")
		}
		for _, below := range v {
			withoutWords(below)
		}
	case []any:
		for _, below := range v {
			withoutWords(below)
		}
	}
}

// A mutation is one edit at one path of a schema. Further edits precede it at the same path, so that it can also remove any
// keyword.
type mutation struct {
	*rand.Rand
	crd  *unstructured.Unstructured
	path []string // property names, "[]" and "*"
	name string

	tried int // number of objects that the old definition accepts
}

// pair returns a CRD before and after the mutation.
func (m *mutation) pair() (before, after *unstructured.Unstructured, ok bool) {
	before = m.crd.DeepCopy()
	root := rootOf(before)
	m.path = m.somewhere(root)
	edited := ""
	if m.IntN(3) > 0 {
		edited = m.keyword(m.at(root))
		m.edit(m.at(root), edited)
	}
	after = before.DeepCopy()
	place := m.at(rootOf(after))
	if edited == "" || m.IntN(4) == 0 {
		edited = m.keyword(place)
	}
	m.name += m.edit(place, edited) + "; "
	if m.IntN(8) == 0 {
		m.name += m.edit(place, m.keyword(place)) + "; "
	}
	if m.IntN(6) == 0 { // and one level deeper
		if names := slices.Sorted(maps.Keys(object(place["properties"]))); len(names) > 0 {
			below := object(object(place["properties"])[names[m.IntN(len(names))]])
			m.name += "below: " + m.edit(below, m.keyword(below))
		}
	}
	return before, after, asJSON(root) != asJSON(rootOf(after))
}

func rootOf(crd *unstructured.Unstructured) map[string]any {
	all := versions(object(crd.Object["spec"]))
	return schemaOf(all[stored(all)])
}

// somewhere returns a path below spec.
func (m *mutation) somewhere(root map[string]any) (path []string) {
	at := root
	for {
		steps := []string{}
		for _, name := range slices.Sorted(maps.Keys(object(at["properties"]))) {
			if len(path) > 0 || name != "apiVersion" && name != "kind" && name != "metadata" {
				steps = append(steps, name)
			}
		}
		if object(at["items"]) != nil {
			steps = append(steps, "[]")
		}
		if object(at["additionalProperties"]) != nil {
			steps = append(steps, "*")
		}
		if len(steps) == 0 || len(path) > 1 && m.IntN(4) == 0 {
			return path
		}
		step := steps[m.IntN(len(steps))]
		path = append(path, step)
		at = below(at, step)
	}
}

func below(schema map[string]any, step string) map[string]any {
	switch step {
	case "[]":
		return object(schema["items"])
	case "*":
		return object(schema["additionalProperties"])
	}
	if p := object(object(schema["properties"])[step]); p != nil {
		return p
	}
	return object(schema["additionalProperties"])
}

func (m *mutation) at(root map[string]any) map[string]any {
	for _, step := range m.path {
		root = below(root, step)
	}
	return root
}

func pick[T any](m *mutation, values ...T) T { return values[m.IntN(len(values))] }

// keyword returns a keyword that fits a schema.
func (m *mutation) keyword(s map[string]any) string {
	kind, _ := s["type"].(string)
	keywords := []string{"nullable", "type", "default", "combine"}
	switch kind {
	case "string":
		keywords = append(keywords, "enum", "format", "pattern", "maxLength", "minLength", "rule")
	case "integer", "number":
		keywords = append(keywords, "enum", "format", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "rule")
	case "array":
		keywords = append(keywords, "maxItems", "minItems", "x-kubernetes-list-type", "items", "rule")
	case "object":
		keywords = append(keywords, "required", "required", "properties", "properties", "addProperty", "maxProperties", "minProperties", "additionalProperties", "struct",
			"x-kubernetes-preserve-unknown-fields", "x-kubernetes-map-type", "x-kubernetes-embedded-resource", "rule")
	}
	return pick(m, keywords...)
}

// edit changes one keyword of a schema and returns a description.
func (m *mutation) edit(s map[string]any, key string) string {
	if s == nil {
		return "nothing"
	}
	kind, _ := s["type"].(string)
	was := asJSON(s[key])
	set := func(values ...any) string {
		v := pick(m, values...)
		if v == nil {
			delete(s, key)
		} else {
			s[key] = v
		}
		return fmt.Sprintf("%s %s → %s", key, was, asJSON(v))
	}
	text := func(v any) any {
		if kind == "string" {
			return v
		}
		return int64(len(v.(string)))
	}
	switch key {
	case "nullable":
		return set(true, true, nil)
	case "type":
		if len(m.path) == 1 { // the spec
			return "nothing"
		}
		for k := range s {
			if k != "default" && k != "nullable" {
				delete(s, k)
			}
		}
		made := pick(m,
			map[string]any{"type": "string"}, map[string]any{"type": "integer"}, map[string]any{"type": "number"}, map[string]any{"type": "boolean"},
			map[string]any{"x-kubernetes-int-or-string": true}, map[string]any{"x-kubernetes-preserve-unknown-fields": true},
			map[string]any{"x-kubernetes-int-or-string": true, "anyOf": intOrString},
			map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
			map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}, "b": map[string]any{"type": "string", "maxLength": int64(3)}}},
			map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		)
		maps.Copy(s, (&unstructured.Unstructured{Object: made}).DeepCopy().Object)
		return fmt.Sprintf("type → %s", asJSON(made))
	case "default":
		switch kind {
		case "string":
			return set("ab", "b", nil)
		case "integer", "number":
			return set(int64(1), int64(5), nil)
		case "boolean":
			return set(true, false, nil)
		case "object":
			return set(map[string]any{}, nil)
		case "array":
			return set([]any{}, nil)
		}
	case "enum":
		return set([]any{text("ab"), text("abcd")}, []any{text("ab"), text("abcd"), text("c")}, []any{text("c")}, nil)
	case "format":
		if kind == "string" {
			return set("date", "date-time", "ipv4", "arn", "byte", "password", "uuid", nil)
		}
		return set("int32", "int64", "float", "double", nil)
	case "pattern":
		return set("^a", "^[a-c]*$", "b$", nil)
	case "maxLength", "maxItems", "maxProperties":
		return set(int64(0), int64(1), int64(2), int64(5), nil)
	case "minLength", "minItems", "minProperties":
		return set(int64(0), int64(1), int64(2), nil)
	case "maximum", "minimum":
		return set(int64(0), int64(1), int64(5), int64(9), nil)
	case "exclusiveMaximum", "exclusiveMinimum":
		return set(true, nil)
	case "multipleOf":
		return set(int64(1), int64(2), int64(5), int64(10), nil)
	case "x-kubernetes-list-type":
		delete(s, "x-kubernetes-list-map-keys")
		if items := object(s["items"]); items["type"] == "object" && m.IntN(2) == 0 {
			for _, name := range slices.Sorted(maps.Keys(object(items["properties"]))) {
				if p := object(object(items["properties"])[name]); p["type"] == "string" {
					items["required"] = append(slices.DeleteFunc(list(items["required"]), func(v any) bool { return v == name }), name)
					s[key], s["x-kubernetes-list-map-keys"] = "map", []any{name}
					return "list-type → map by " + name
				}
			}
		}
		return set("atomic", "set", nil)
	case "x-kubernetes-map-type":
		return set("atomic", "granular", nil)
	case "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource":
		if len(m.path) == 1 && key == "x-kubernetes-embedded-resource" {
			return "nothing"
		}
		return set(true, true, nil)
	case "items":
		key = "maxItems"
		return set(int64(3), nil)
	case "required":
		names := slices.Sorted(maps.Keys(object(s["properties"])))
		if len(names) == 0 {
			return "nothing"
		}
		name := names[m.IntN(len(names))]
		all := slices.Clone(list(s["required"]))
		if i := slices.Index(texts(s["required"]), name); i >= 0 {
			all = slices.Delete(all, i, i+1)
		} else {
			all = append(all, name)
		}
		s["required"] = all
		if len(all) == 0 {
			delete(s, "required")
		}
		return "required " + name
	case "properties":
		names := slices.Sorted(maps.Keys(object(s["properties"])))
		if len(names) == 0 {
			return "nothing"
		}
		name := names[m.IntN(len(names))]
		delete(object(s["properties"]), name)
		s["required"] = slices.DeleteFunc(slices.Clone(list(s["required"])), func(v any) bool { return v == name })
		if len(list(s["required"])) == 0 {
			delete(s, "required")
		}
		return "without " + name
	case "addProperty":
		if s["additionalProperties"] != nil {
			return "nothing"
		}
		if s["properties"] == nil {
			s["properties"] = map[string]any{}
		}
		name := pick(m, "unknown", "new")
		made := pick(m, map[string]any{"type": "string"}, map[string]any{"type": "string", "default": "ab"}, map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "integer"}}},
			map[string]any{"x-kubernetes-preserve-unknown-fields": true}, map[string]any{"x-kubernetes-preserve-unknown-fields": true, "nullable": true})
		object(s["properties"])[name] = (&unstructured.Unstructured{Object: made}).DeepCopy().Object
		return fmt.Sprintf("with %s %s", name, asJSON(made))
	case "additionalProperties", "struct":
		if len(m.path) == 1 {
			return "nothing"
		}
		delete(s, "properties")
		delete(s, "required")
		delete(s, "additionalProperties")
		made := pick[any](m, map[string]any{"type": "string"}, map[string]any{"type": "string", "maxLength": int64(2)}, map[string]any{"x-kubernetes-preserve-unknown-fields": true}, true)
		if key == "struct" {
			s["properties"] = map[string]any{"a": map[string]any{"type": "string"}, "b": map[string]any{"type": pick(m, "string", "integer")}}
			return "a struct"
		}
		s["additionalProperties"] = made
		return "a map of " + asJSON(made)
	case "rule":
		key = "x-kubernetes-validations"
		rule := map[string]string{
			"string": "self.size() < 3", "integer": "self < 4", "number": "self < 4.0", "array": "self.size() < 2", "object": "size(self) < 2",
		}[kind]
		if kind == "object" && s["additionalProperties"] == nil { // a struct has a fixed set of properties
			names := slices.DeleteFunc(slices.Sorted(maps.Keys(object(s["properties"]))), func(name string) bool {
				return slices.Contains(texts(s["required"]), name) || object(object(s["properties"])[name])["default"] != nil // the property is always present
			})
			if len(names) == 0 {
				return "nothing"
			}
			rule = "has(self." + names[0] + ")"
			if strings.ContainsAny(names[0], "-./$") {
				return "nothing"
			}
		}
		return set([]any{map[string]any{"rule": rule}}, []any{map[string]any{"rule": " " + strings.ReplaceAll(rule, " < ", "<") + "\n"}},
			[]any{map[string]any{"rule": "self == oldSelf"}}, nil)
	case "combine":
		key = pick(m, "allOf", "anyOf", "oneOf", "not")
		var parts []any
		switch kind {
		case "string":
			parts = []any{map[string]any{"maxLength": int64(2)}, map[string]any{"pattern": "^a"}, map[string]any{"enum": []any{"c"}}, map[string]any{"maxLength": int64(3)}}
		case "integer", "number":
			parts = []any{map[string]any{"maximum": int64(3)}, map[string]any{"minimum": int64(7)}, map[string]any{"multipleOf": int64(2)}, map[string]any{"maximum": int64(4)}}
		case "array":
			parts = []any{map[string]any{"maxItems": int64(1)}, map[string]any{"minItems": int64(3)}}
		case "object":
			names := slices.Sorted(maps.Keys(object(s["properties"])))
			if len(names) < 2 {
				return "nothing"
			}
			parts = []any{map[string]any{"required": []any{names[0]}}, map[string]any{"required": []any{names[len(names)-1]}}}
		default:
			return "nothing"
		}
		was = asJSON(s[key])
		m.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		if key == "not" {
			return set(parts[0], parts[1], nil)
		}
		return set(parts[:1], parts[:2], slices.Clone(parts[:1+m.IntN(len(parts))]), nil)
	}
	return "nothing"
}

// A Witness is an object that the old definition accepts, and of which the new one drops or refuses something.
type Witness struct {
	Object *unstructured.Unstructured // as it is stored
	Update *unstructured.Unstructured // what it may become only under the old definition; usually nil
	What   string
}

// witness returns a Witness, or nil if none of the many tried objects is one.
func (m *mutation) witness(ctx context.Context, before, after *unstructured.Unstructured) *Witness {
	version := stored(versions(object(before.Object["spec"])))
	was, is := rootOf(before), rootOf(after)
	j, err := NewJudge(before, after, version)
	if err != nil {
		return &Witness{What: "no judge: " + err.Error()}
	}
	next := j.after[len(j.after)-1]
	var taken []*unstructured.Unstructured
	for _, content := range objects(was, is, m.path) {
		o, _ := content.(map[string]any)
		if o == nil {
			continue
		}
		o["apiVersion"], o["kind"], o["metadata"] = before.GetAPIVersion(), "Kind", map[string]any{"name": "a"}
		given := (&unstructured.Unstructured{Object: o}).DeepCopy()
		old := given.DeepCopy()
		j.before.Coerce(old)
		if len(j.before.invalid(ctx, old)) > 0 || len(j.before.broken(ctx, old)) > 0 {
			continue
		}
		taken = append(taken, old)
		if has(old.Object, m.path) {
			m.tried++
		}
		if loses, refused := j.Of(ctx, given.DeepCopy()); len(loses)+len(refused) > 0 {
			return &Witness{Object: old, What: fmt.Sprintf("loses %v, is refused %v: %s", loses, refused, asJSON(given.Object["spec"]))}
		}
		fresh := given.DeepCopy() // the accepted objects, applied again
		pruning.Prune(fresh.Object, j.before.structural, true)
		defaulting.PruneNonNullableNullsWithoutDefaults(fresh.Object, j.before.structural)
		withoutNulls(fresh.Object, old.Object)
		sent := fresh.DeepCopy()
		next.Coerce(fresh)
		if wrong := append(next.invalid(ctx, fresh), next.broken(ctx, fresh)...); len(wrong) > 0 {
			return &Witness{Object: sent, What: fmt.Sprintf("a new object is refused %v: %s", wrong, asJSON(given.Object["spec"]))}
		}
	}
	for i, one := range taken { // an object and its result
		for _, other := range taken[:min(i, 12)] {
			if refusedUpdate(ctx, j.before, one, other) || !refusedUpdate(ctx, next, one, other) {
				continue
			}
			return &Witness{Object: one, Update: other, What: fmt.Sprintf("cannot become %s: %s", asJSON(other.Object["spec"]), asJSON(one.Object["spec"]))}
		}
	}
	return nil
}

// has reports whether an object has a value at a path.
func has(v any, path []string) bool {
	if len(path) == 0 {
		return v != nil
	}
	switch v := v.(type) {
	case map[string]any:
		if path[0] == "*" {
			return slices.ContainsFunc(slices.Collect(maps.Values(v)), func(v any) bool { return has(v, path[1:]) })
		}
		return has(v[path[0]], path[1:])
	case []any:
		return slices.ContainsFunc(v, func(v any) bool { return has(v, path[1:]) })
	}
	return false
}

// withoutNulls drops nulls that a default replaces.
func withoutNulls(v, filled any) {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			if below == nil && object(filled)[key] != nil {
				delete(v, key)
			}
			withoutNulls(below, object(filled)[key])
		}
	case []any:
		for i, below := range v {
			if all := list(filled); i < len(all) {
				withoutNulls(below, all[i])
			}
		}
	}
}

func refusedUpdate(ctx context.Context, by judged, from, to *unstructured.Unstructured) bool {
	if by.rules == nil {
		return false
	}
	wrong, _ := by.rules.Validate(ctx, nil, by.structural, to.Object, from.Object, celconfig.RuntimeCELCostBudget)
	return len(wrong) > 0
}

// objects returns values of a schema that differ at a path.
func objects(was, is map[string]any, path []string) []any {
	if len(path) == 0 {
		return append(values(was, 3), values(is, 3)...)
	}
	step := path[0]
	from, to := below(was, step), below(is, step)
	inner := objects(from, to, path[1:])
	var all []any
	switch step {
	case "[]":
		all = append(all, []any{})
		for i, v := range inner {
			all = append(all, []any{v}, []any{v, v}, []any{v, inner[(i+1)%len(inner)], inner[(i+2)%len(inner)]})
		}
	case "*":
		all = append(all, map[string]any{})
		for _, v := range inner {
			all = append(all, map[string]any{"k": v})
		}
	default:
		without, _ := minimal(was, 4).(map[string]any)
		without = maps.Clone(without)
		if without == nil {
			without = map[string]any{}
		}
		delete(without, step)
		all = append(all, without)
		inner = append(inner, nil, "text", int64(1), map[string]any{"a": "b"})
		for i, v := range inner {
			with := maps.Clone(without)
			with[step] = v
			all = append(all, with)
			if with["managementPolicies"] != nil && step != "managementPolicies" && i < 60 { // like most objects
				with = maps.Clone(with)
				delete(with, "managementPolicies")
				all = append(all, with)
			}
		}
		if len(path) == 1 { // beside all others
			for _, v := range inner[:min(len(inner), 12)] {
				with, _ := full(was, 2).(map[string]any)
				if with != nil {
					with[step] = v
					all = append(all, with)
				}
			}
		}
	}
	return all
}

// minimal returns a smallest value that a schema accepts.
func minimal(s map[string]any, depth int) any {
	if v, ok := s["default"]; ok && v != nil {
		return v
	}
	switch s["type"] {
	case "object":
		o := map[string]any{}
		for _, name := range texts(s["required"]) {
			if p := object(object(s["properties"])[name]); p != nil && depth > 0 && p["default"] == nil {
				o[name] = minimal(p, depth-1)
			}
		}
		if object(s["properties"])["managementPolicies"] != nil { // providers require fewer fields of observe-only resources
			o["managementPolicies"] = []any{"Observe"}
		}
		if s["x-kubernetes-embedded-resource"] == true {
			o["apiVersion"], o["kind"], o["metadata"] = "v1", "Pod", map[string]any{"name": "a"}
		}
		for i := range int(number(s["minProperties"])) {
			if m := object(s["additionalProperties"]); m != nil && depth > 0 {
				o[fmt.Sprint("k", i)] = minimal(m, depth-1)
			}
		}
		return o
	case "array":
		items := []any{}
		for len(items) < int(number(s["minItems"])) && depth > 0 {
			items = append(items, minimal(object(s["items"]), depth-1))
		}
		return items
	}
	for _, v := range values(s, 1) {
		if v != nil && allowed(s, v) {
			return v
		}
	}
	return "a"
}

// full returns a value with every property.
func full(s map[string]any, depth int) any {
	if s["type"] != "object" || depth == 0 {
		return minimal(s, depth)
	}
	o, _ := minimal(s, depth).(map[string]any)
	o = maps.Clone(o)
	for name, p := range object(s["properties"]) {
		if o[name] == nil {
			o[name] = full(object(p), depth-1)
		}
	}
	return o
}

func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

// allowed reports whether a schema accepts a value.
func allowed(s map[string]any, v any) bool {
	root := map[string]any{"type": "object", "properties": map[string]any{"v": s}}
	j, err := newJudged(root)
	return err == nil && len(j.invalid(context.Background(), &unstructured.Unstructured{Object: map[string]any{"v": v}})) == 0
}

// values returns values at the boundary of what a schema accepts.
func values(s map[string]any, depth int) []any {
	all := []any{nil}
	if list := list(s["enum"]); list != nil {
		all = append(all, list...)
	}
	if s["default"] != nil {
		all = append(all, s["default"])
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		for _, part := range list(s[key]) {
			if depth > 0 && object(part)["type"] == nil {
				merged := maps.Clone(s)
				delete(merged, key)
				maps.Copy(merged, object(part))
				all = append(all, values(merged, depth-1)...)
			}
		}
	}
	kind, _ := s["type"].(string)
	if s["x-kubernetes-int-or-string"] == true {
		return append(all, "a", "", int64(1), int64(0))
	}
	switch kind {
	case "":
		return append(all, "a", int64(1), true, 0.5, []any{"a"}, map[string]any{"a": "b"}, map[string]any{"a": int64(1), "c": map[string]any{"d": "e"}})
	case "boolean":
		return append(all, true, false)
	case "integer", "number":
		for _, n := range []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, -1, -2, -10, 70, 1 << 31, 1 << 40, -(1 << 40)} {
			all = append(all, n)
		}
		for _, key := range []string{"maximum", "minimum", "multipleOf"} {
			if n := number(s[key]); s[key] != nil {
				all = append(all, n, n-1, n+1)
			}
		}
		if kind == "number" {
			all = append(all, 0.5, 2.5, 4.5, -0.5, 8.5, 1e300)
		}
	case "string":
		all = append(all, "", "a", "ab", "b", "c", "abc", "abcd", "cab", "ac", "zz", "zzz", "abcdef", "2020-01-01", "2020-01-01T00:00:00Z", "1.2.3.4", "YWI=", "arn:aws", "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
			strings.Repeat("a", 40), "-1", "1h", "[", "ab ", "zb", "zzzzb", "2021-01-01", "2021-01-01T00:00:00Z", "1.2.3.5", "YWM=", "arn:aws:b", "6ba7b811-9dad-11d1-80b4-00c04fd430c8")
		for _, key := range []string{"maxLength", "minLength"} {
			if n := int(number(s[key])); s[key] != nil && n < 2000 {
				all = append(all, strings.Repeat("a", n), strings.Repeat("a", n+1), strings.Repeat("b", max(0, n-1)))
			}
		}
		if pattern, ok := s["pattern"].(string); ok {
			if re, err := syntax.Parse(pattern, syntax.Perl); err == nil {
				for n := range 4 {
					all = append(all, matching(re, n))
				}
			}
		}
	case "array":
		items := []any{"a"}
		if depth > 0 {
			items = values(object(s["items"]), depth-1)
			items = append([]any{minimal(object(s["items"]), 3)}, items...)
		}
		all = append(all, distinctItems(s, items)...)
		for n := range 7 {
			list := []any{}
			for i := range n {
				list = append(list, items[i%len(items)])
			}
			all = append(all, list)
			if n > 0 {
				all = append(all, slices.Repeat(items[:1], n))
			}
		}
		if n := int(number(s["maxItems"])); n < 50 {
			all = append(all, slices.Repeat(items[:1], n), slices.Repeat(items[:1], n+1))
		}
	case "object":
		least := minimal(s, 4)
		o, _ := least.(map[string]any)
		most, _ := full(s, 2).(map[string]any)
		all = append(all, least, most, map[string]any{})
		more := maps.Clone(o)
		for _, name := range slices.Sorted(maps.Keys(object(s["properties"]))) { // one property after another
			if len(more) < 8 && more[name] == nil {
				more = maps.Clone(more)
				more[name] = minimal(object(object(s["properties"])[name]), 3)
				all = append(all, more)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(object(s["properties"]))) {
			without := maps.Clone(most)
			delete(without, name)
			all = append(all, without)
			p := object(object(s["properties"])[name])
			with := maps.Clone(o)
			with[name] = minimal(p, 3)
			all = append(all, with)
			bare := maps.Clone(o)
			delete(bare, name)
			all = append(all, bare)
			if depth > 0 {
				for _, v := range values(p, 0) {
					with := maps.Clone(o)
					with[name] = v
					all = append(all, with)
				}
			}
		}
		if m := object(s["additionalProperties"]); m != nil || s["additionalProperties"] == true {
			inner := []any{"a", int64(1), map[string]any{"a": "b"}}
			if depth > 0 && m != nil {
				inner = append(values(m, depth-1), minimal(m, 3))
			}
			for n := range 7 {
				with := map[string]any{}
				for i := range n {
					with[fmt.Sprint("k", i)] = inner[len(inner)-1]
				}
				all = append(all, with)
			}
			for _, v := range inner {
				all = append(all, map[string]any{"a": v}, map[string]any{"k": v})
			}
		}
		for _, v := range []any{"x", int64(5), map[string]any{"a": "b", "deep": int64(1)}, nil} { // fields that no schema declares
			for _, name := range []string{"unknown", "new", "a", "apiVersion", "kind", "metadata"} {
				with := maps.Clone(o)
				if _, declared := object(s["properties"])[name]; !declared {
					with[name] = v
					all = append(all, with)
				}
			}
		}
		embedded := maps.Clone(o)
		embedded["apiVersion"], embedded["kind"], embedded["metadata"] = "v1", "Pod", map[string]any{"name": "a"}
		all = append(all, embedded)
		for n := range 7 {
			with := maps.Clone(embedded)
			for i := range n {
				with[fmt.Sprint("more", i)] = "x"
			}
			all = append(all, with)
		}
	}
	return all
}

// distinctItems returns lists of distinct items that a list may contain. Items differ by their keys, if the list has keys.
func distinctItems(s map[string]any, items []any) []any {
	var differ []any
	keys := texts(s["x-kubernetes-list-map-keys"])
	for i, v := range items {
		if len(keys) > 0 {
			with, _ := minimal(object(s["items"]), 3).(map[string]any)
			if with = maps.Clone(with); with == nil {
				continue
			}
			for _, key := range keys {
				with[key] = fmt.Sprint("k", i)
			}
			v = with
		}
		if len(differ) < 7 && v != nil && !slices.ContainsFunc(differ, func(other any) bool { return asJSON(other) == asJSON(v) }) && allowed(object(s["items"]), v) {
			differ = append(differ, v)
		}
	}
	var all []any
	for n := range differ {
		all = append(all, slices.Clone(differ[:n+1]))
	}
	return all
}

// matching returns a text that matches a regular expression.
func matching(re *syntax.Regexp, n int) string {
	var out strings.Builder
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			return string(re.Rune[(2*n)%len(re.Rune)&^1])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			out.WriteString(matching(sub, n))
		}
	case syntax.OpCapture:
		return matching(re.Sub[0], n)
	case syntax.OpStar, syntax.OpQuest:
		if n > 0 {
			return matching(re.Sub[0], n-1)
		}
	case syntax.OpPlus:
		return strings.Repeat(matching(re.Sub[0], n), 1+n)
	case syntax.OpRepeat:
		return strings.Repeat(matching(re.Sub[0], n), min(max(re.Min, n), max(re.Min, re.Max)))
	case syntax.OpAlternate:
		return matching(re.Sub[n%len(re.Sub)], n)
	}
	return out.String()
}
