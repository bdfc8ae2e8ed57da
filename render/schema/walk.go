package schema

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A location is a place in the schema of a version.
type location struct{ version, path string }

func (p location) at(rule Rule, from, to any, breaking bool) Change {
	return Change{Rule: rule, Version: p.version, Path: p.path, From: asJSON(from), To: asJSON(to), Breaking: breaking}
}

func (p location) property(name string) location {
	if p.path != "" {
		name = p.path + "." + name
	}
	return location{p.version, name}
}

// words lists keywords that are only for readers.
var words = []string{"description", "title", "example", "externalDocs", "id", "$schema"}

// anything is the schema of undeclared values where unknown fields are kept.
var anything = map[string]any{"x-kubernetes-preserve-unknown-fields": true, "nullable": true}

// schema compares two schemas and everything below them. A new property changes nothing for users who do not set it; every other
// difference is judged at its own place.
func (c *comparison) schema(at location, was, is map[string]any) {
	if was != nil && reflect.ValueOf(was).Pointer() == reflect.ValueOf(is).Pointer() {
		return // the same schema, which callers share to save time
	}
	c.above = append(c.above, is)
	defer func() { c.above = c.above[:len(c.above)-1] }()
	c.properties(at, was, is)
	here := len(c.Changes)
	for _, key := range keysOf(was, is) {
		from, to := was[key], is[key]
		switch {
		case key == "properties":
		case c.loses && slices.Contains(harmless, key):
		case key == "items" && both(from, to):
			c.schema(location{at.version, at.path + "[]"}, object(from), object(to))
		case key == "additionalProperties" && both(from, to):
			c.schema(at.property("*"), object(from), object(to))
		case key == "required":
			c.required(at, was, is)
		case reflect.DeepEqual(from, to):
		case slices.Contains(words, key):
			c.Words = true
		case key == "x-kubernetes-validations":
			c.validations(at, was, is)
		case key == "pattern" && to != nil:
			c.pattern(at, was, is)
		case key == "default":
			c.add(at.at(Default, from, to, c.reads(at, from, to)))
		default:
			c.add(at.at(Rule(key), from, to, c.narrows(key, was, is) && !refusedBefore(key, was, is)))
		}
	}
	if kind := was["type"]; len(list(was["enum"])) > 0 && (kind == nil || scalar(kind)) {
		c.enumerated(c.Changes[here:], was, is)
	}
}

// enumerated judges the changes of a place that had an enum: they break if one of its values is refused.
func (c *comparison) enumerated(changes []Change, was, is map[string]any) {
	narrows := func(c Change) bool {
		return c.Breaking && !slices.Contains([]Rule{Default, Immutable, "nullable"}, c.Rule)
	}
	if !slices.ContainsFunc(changes, narrows) {
		return
	}
	before, err := newJudged(whole(was))
	after, failed := newJudged(whole(is))
	if err != nil || failed != nil {
		return
	}
	for _, v := range list(was["enum"]) {
		if before.takes(v) && !after.takes(v) {
			return
		}
	}
	for i := range changes {
		changes[i].Breaking = changes[i].Breaking && !narrows(changes[i])
	}
}

// whole returns the schema of an object with a field "value".
func whole(schema map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{"value": schema}}
}

// takes reports whether an API server accepts a value in an object of whole.
func (v judged) takes(value any) bool {
	o := &unstructured.Unstructured{Object: map[string]any{"value": value}}
	ctx := context.Background()
	if len(v.invalid(ctx, o)) > 0 {
		return false
	}
	return len(v.broken(ctx, o)) == 0 && len(v.Broken(ctx, o, nil)) == 0 // in an update, and as a new object
}

func both(a, b any) bool { return object(a) != nil && object(b) != nil }

// properties compares the properties of an object. Undeclared properties are dropped, unless unknown fields are kept or
// a map takes them.
func (c *comparison) properties(at location, was, is map[string]any) {
	before, after := object(was["properties"]), object(is["properties"])
	if at.path == "" && !c.values {
		before, after = withMetadata(before), withMetadata(after)
	}
	for _, name := range keysOf(before, after) {
		from, declared := before[name]
		to, kept := after[name]
		switch below := at.property(name); {
		case declared && kept:
			c.schema(below, object(from), object(to))
		case declared:
			c.removed(below, object(from), is)
		default:
			c.added(below, was, object(to))
		}
	}
}

// removed compares a property with what its object may still have there.
func (c *comparison) removed(at location, from, is map[string]any) {
	switch undeclared := object(is["additionalProperties"]); {
	case c.values: // it refused values, and no longer does
	case undeclared != nil:
		c.schema(at, from, undeclared)
	default:
		stays := keeps(is) || is["additionalProperties"] == true && flat(from)
		c.add(at.at(Field, nil, nil, !stays))
	}
}

// added compares what an object may have had at an undeclared place with a new property.
func (c *comparison) added(at location, was, to map[string]any) {
	switch undeclared := object(was["additionalProperties"]); {
	case c.values:
		c.schema(at, map[string]any{}, to)
		return
	case undeclared != nil:
		c.schema(at, undeclared, to)
		return
	case keeps(was) && c.narrowed(at, anything, to):
		return
	}
	c.Added = append(c.Added, at.at("field", nil, nil, false))
	c.rules = c.rules || hasRules(to)
	if value := to["default"]; value != nil && !c.loses && c.under(to).reads(at, nil, value) {
		c.add(at.at(Default, nil, value, true))
	}
}

// narrowed compares two schemas, and reports whether the second one drops or refuses something. Only then do
// its changes count.
func (c *comparison) narrowed(at location, was, is map[string]any) bool {
	within := comparison{loses: c.loses, values: c.values, above: c.above}
	within.schema(at, was, is)
	if len(within.Breaking()) == 0 {
		return false
	}
	c.add(within.Breaking()...)
	return true
}

// keeps reports whether an object keeps all undeclared fields.
func keeps(schema map[string]any) bool { return schema["x-kubernetes-preserve-unknown-fields"] == true }

// flat reports whether values of a schema have no fields. Unlike nested values, they survive in a map with additionalProperties:
// true.
func flat(schema map[string]any) bool {
	kinds := typesOf(schema)
	return kinds != nil && !slices.Contains(kinds, "object") && !slices.Contains(kinds, "array")
}

// withMetadata returns the properties of a whole object. The API server keeps three of them, declared or not.
func withMetadata(properties map[string]any) map[string]any {
	text := map[string]any{"type": "string"}
	metadata := map[string]any{"name": text, "generateName": text}
	maps.Copy(metadata, object(object(properties["metadata"])["properties"]))
	all := map[string]any{"apiVersion": text, "kind": text}
	maps.Copy(all, properties)
	all["metadata"] = map[string]any{"type": "object", "properties": metadata}
	return all
}

// required compares the required fields of an object. A field with a default is never missing.
func (c *comparison) required(at location, was, is map[string]any) {
	needed, needs := texts(was["required"]), texts(is["required"])
	for _, name := range needs {
		from, to := c.filled(was, name), c.filled(is, name)
		switch demanded := slices.Contains(needed, name); {
		case demanded && (from == nil || to != nil), c.loses && from != nil: // stored objects have the field
		case to != nil:
			c.add(at.property(name).at(Required, nil, to, false))
		default:
			c.add(at.property(name).at(Required, nil, nil, !combined(was, map[string]any{"required": []any{name}})))
		}
	}
	for _, name := range needed {
		if !slices.Contains(needs, name) {
			c.add(at.property(name).at(Required, nil, nil, false))
		}
	}
}

func texts(v any) []string {
	var all []string
	for _, item := range list(v) {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// filled returns the default of a property of an object.
func (c *comparison) filled(schema map[string]any, name string) any {
	if c.values {
		return nil
	}
	return object(object(schema["properties"])[name])["default"]
}

// under returns a comparison at a schema below this one.
func (c *comparison) under(is map[string]any) *comparison {
	return &comparison{above: append(slices.Clip(c.above), is)}
}

// A defaulted is a field whose default changes.
type defaulted struct {
	steps    []string // of the path; [] for the items of a list, * for the values of a map
	from, to any      // the defaults; nil for none
}

// itself is the last step of the path.
func (d defaulted) itself() string { return d.steps[len(d.steps)-1] }

// below returns the path from a depth.
func (d defaulted) below(depth int) []string { return d.steps[min(depth, len(d.steps)-1):] }

// reads reports whether a check that can refuse objects depends on the default of a field.
func (c *comparison) reads(at location, from, to any) bool {
	d := defaulted{strings.Split(strings.NewReplacer("[]", ".[]").Replace(at.path), "."), from, to}
	last := len(c.above) - 1
	if d.itself() == "[]" {
		switch {
		case from == nil:
			return false // the default replaces a null item, which was refused before
		case to == nil && c.above[last]["nullable"] != true:
			return true // nothing replaces a null item
		}
	}
	for depth, above := range c.above[:last] {
		parent := depth == last-1
		if parent && d.counted(above) || d.identifies(above, parent) {
			return true
		}
		if d.inRule(above, depth) || d.inCombination(above, depth) {
			return true
		}
	}
	return false
}

// counted reports whether the number of fields of the parent has a limit that the default may cross.
func (d defaulted) counted(parent map[string]any) bool {
	if d.from == nil {
		return parent["maxProperties"] != nil
	}
	return parent["minProperties"] != nil
}

// identifies reports whether the field is part of items, or of keys of items, that must be unique.
func (d defaulted) identifies(above map[string]any, parent bool) bool {
	switch above["x-kubernetes-list-type"] {
	case "set":
		return true
	case "map":
		return parent || slices.Contains(texts(above["x-kubernetes-list-map-keys"]), d.itself())
	}
	return false
}

// mentionedIn reports whether a text may read the field by a path from a depth.
func (d defaulted) mentionedIn(text []byte, depth int) bool {
	fields := slices.DeleteFunc(slices.Clone(d.steps), func(step string) bool { return step == "[]" || step == "*" })
	return named(d.below(depth)[0]).Match(text) && named(fields...).Match(text)
}

// inRule reports whether a rule in CEL reads the field.
func (d defaulted) inRule(above map[string]any, depth int) bool {
	return slices.ContainsFunc(list(above["x-kubernetes-validations"]), func(v any) bool {
		rule, _ := object(v)["rule"].(string)
		text := []byte(rule)
		if d.to != nil && !absent.Match(text) {
			text = present.ReplaceAll(text, nil) // a field with a default always exists
		}
		return d.mentionedIn(text, depth) && !unlessAmong(rule, strings.Join(d.below(depth), "."), d.from, d.to)
	})
}

// inCombination reports whether a schema in allOf, anyOf, oneOf or not reads the field.
func (d defaulted) inCombination(above map[string]any, depth int) bool {
	return slices.ContainsFunc([]string{"allOf", "anyOf", "oneOf", "not"}, func(key string) bool {
		if above[key] == nil {
			return false
		}
		text, err := json.Marshal(above[key])
		return err != nil || d.mentionedIn(text, depth)
	})
}

// present matches the CEL test whether a field exists. absent matches a rule that may require that a field does not exist.
var (
	present = regexp.MustCompile(`\bhas\([\w.]*\)`)
	absent  = regexp.MustCompile(`(!|==|!=)[\s(]*has\(|!\([^)]*has\(|has\([\w.]*\)[\s)]*(==|!=|\?)`)
)

// among matches a rule that holds unless a list contains one of some texts: !('*' in self.list || 'Create' in self.list) || more.
var (
	among = regexp.MustCompile(`^\s*!\s*\(((?:[^()|&]+\|\|)*[^()|&]+)\)\s*\|\|(.*)$`)
	in    = regexp.MustCompile(`^\s*(?:'([^'"\\]*)'|"([^'"\\]*)")\s+in\s+self\.([\w.]+)\s*$`)
)

// unlessAmong reports whether a rule has the form that providers use for fields that only some management policies need, and still
// holds with the new default of the list if it holds with the old default. If the list is missing, such a rule holds only if the
// rest of it holds.
func unlessAmong(rule, path string, from, to any) bool {
	parts := among.FindStringSubmatch(strings.ReplaceAll(rule, "\n", " "))
	name := path[strings.LastIndex(path, ".")+1:]
	if parts == nil || strings.Contains(rule, "oldSelf") || named(name).MatchString(parts[2]) {
		return false
	}
	var some []string
	for one := range strings.SplitSeq(parts[1], "||") {
		text := in.FindStringSubmatch(one)
		if text == nil || text[3] != path {
			return false
		}
		some = append(some, text[1]+text[2])
	}
	has := func(values any) bool {
		return slices.ContainsFunc(texts(values), func(value string) bool { return slices.Contains(some, value) })
	}
	switch {
	case from == nil:
		return true
	case to == nil:
		return has(from)
	}
	return has(from) || !has(to)
}

// named matches a text that contains the last of some names. Items of lists and values of maps have no name, so any text may refer
// to them.
func named(names ...string) *regexp.Regexp {
	if len(names) == 0 || names[len(names)-1] == "[]" || names[len(names)-1] == "*" {
		return regexp.MustCompile("")
	}
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(names[len(names)-1]) + `\b`)
}
