package crd

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Field documents a field of a kind for users.
type Field struct {
	Name        string `json:"name"`
	Type        string `json:"type"` // string, object, []object, map[string]integer, any, …
	Format      string `json:"format,omitempty"`
	Description string `json:"description,omitempty"`

	Required         bool `json:"required,omitempty"`
	RequiredToCreate bool `json:"requiredToCreate,omitempty"` // required while managementPolicies allow creating or updating
	Immutable        bool `json:"immutable,omitempty"`        // the API server refuses to change the value once it is set

	Default any      `json:"default,omitempty"`
	Enum    []any    `json:"enum,omitempty"`   // for a list or map, of its items
	Limits  []string `json:"limits,omitempty"` // further constraints on the value, in words
	Rules   []string `json:"rules,omitempty"`  // CEL rules, as their messages if they have any

	Fields []Field `json:"fields,omitempty"` // by name; for a list or map, the fields of its items
	Below  int     `json:"below,omitempty"`  // the number of omitted fields
}

// A NoFieldError reports a path to a field that does not exist.
type NoFieldError struct {
	At   string   // the existing part of the path; "" is the root
	Name string   // the missing field
	Have []string // the existing fields, by name
}

func (e NoFieldError) Error() string {
	if e.At == "" {
		return fmt.Sprintf("there is no field %q", e.Name)
	}
	return fmt.Sprintf("there is no field %q in %s", e.Name, e.At)
}

// FieldAt returns the field at a path in an OpenAPI v3 schema, with the given number of levels of fields below it. A negative
// number means all levels. An empty path means the kind itself. Lists and maps are not steps of a path: the path of a name inside
// items is items, name. The error is a NoFieldError.
func FieldAt(schema map[string]any, path []string, levels int) (Field, error) {
	at := subschema{schema: schema}
	for i, name := range path {
		properties := at.properties()
		if _, ok := properties[name]; !ok {
			return Field{}, NoFieldError{At: strings.Join(path[:i], "."), Name: name, Have: slices.Sorted(maps.Keys(properties))}
		}
		at = at.below(name)
	}
	return at.field(levels), nil
}

// A subschema is a schema within another schema, with the facts that the schemas above determine.
type subschema struct {
	name     string
	schema   map[string]any
	required bool
	toCreate []string // paths below it that are required to create; "" is the schema itself
}

// inner returns the schema of the items of lists and maps, with the prefix of its type.
func (p subschema) inner() (schema map[string]any, of string) {
	schema = p.schema
	for {
		items, isList := schema["items"].(map[string]any)
		values, isMap := schema["additionalProperties"].(map[string]any)
		switch {
		case isList:
			schema, of = items, of+"[]"
		case isMap && schema["properties"] == nil:
			schema, of = values, of+"map[string]"
		default:
			return schema, of
		}
	}
}

func (p subschema) properties() map[string]any {
	schema, _ := p.inner()
	properties, _ := schema["properties"].(map[string]any)
	return properties
}

// below returns the subschema of a property.
func (p subschema) below(name string) subschema {
	schema, _ := p.inner()
	required, _ := schema["required"].([]any)
	child := subschema{name: name, required: slices.Contains(required, any(name))}
	child.schema, _ = p.properties()[name].(map[string]any)
	for _, path := range slices.Concat(p.toCreate, requiredToCreate(schema)) {
		if first, rest, _ := strings.Cut(path, "."); first == name {
			child.toCreate = append(child.toCreate, rest)
		}
	}
	return child
}

func (p subschema) field(levels int) Field {
	schema, of := p.inner()
	f := Field{
		Name:             p.name,
		Type:             of + typeOf(schema),
		Format:           textOf(schema, "format"),
		Description:      strings.Join(strings.Fields(cmp.Or(textOf(p.schema, "description"), textOf(schema, "description"))), " "),
		Required:         p.required,
		RequiredToCreate: slices.Contains(p.toCreate, ""),
		Default:          p.schema["default"],
	}
	f.Enum, _ = schema["enum"].([]any)
	f.limit(p.schema)
	f.rule(p.schema)
	if of != "" {
		each := Field{}
		each.limit(schema)
		each.rule(schema)
		for _, limit := range each.Limits {
			f.Limits = append(f.Limits, "each "+limit)
		}
		f.Rules = append(f.Rules, each.Rules...)
	}

	properties := p.properties()
	if levels == 0 {
		f.Below = len(properties)
		return f
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		f.Fields = append(f.Fields, p.below(name).field(levels-1))
	}
	return f
}

// typeOf returns the type of a schema that is neither a list nor a map.
func typeOf(schema map[string]any) string {
	is := textOf(schema, "type")
	switch {
	case schema["x-kubernetes-int-or-string"] == true:
		return "integer or string"
	case is == "":
		return "any"
	case is == "object" && schema["additionalProperties"] == true:
		return "map[string]any"
	}
	return is
}

// limit adds the constraints of a schema.
func (f *Field) limit(schema map[string]any) {
	add := func(words, key string) {
		if v, ok := schema[key]; ok {
			f.Limits = append(f.Limits, words+" "+plainly(v))
		}
	}
	count := func(words, key, thing string) {
		if v, ok := schema[key]; ok {
			if v != any(int64(1)) {
				thing += "s"
			}
			f.Limits = append(f.Limits, words+" "+plainly(v)+" "+thing)
		}
	}
	minimum, maximum := "at least", "at most"
	if schema["exclusiveMinimum"] == true {
		minimum = "more than"
	}
	if schema["exclusiveMaximum"] == true {
		maximum = "less than"
	}
	add(minimum, "minimum")
	add(maximum, "maximum")
	add("a multiple of", "multipleOf")
	count("at least", "minLength", "character")
	count("at most", "maxLength", "character")
	add("matching", "pattern")
	count("at least", "minItems", "item")
	count("at most", "maxItems", "item")
	count("at least", "minProperties", "key")
	count("at most", "maxProperties", "key")
	if keys, _ := schema["x-kubernetes-list-map-keys"].([]any); len(keys) > 0 {
		names := make([]string, len(keys))
		for i, key := range keys {
			names[i] = plainly(key)
		}
		f.Limits = append(f.Limits, "no duplicates "+strings.Join(names, " and "))
	}
	if schema["x-kubernetes-list-type"] == "set" || schema["uniqueItems"] == true {
		f.Limits = append(f.Limits, "no duplicates")
	}
	if schema["x-kubernetes-embedded-resource"] == true {
		f.Limits = append(f.Limits, "a whole Kubernetes object")
	}
	if schema["x-kubernetes-preserve-unknown-fields"] == true {
		f.Limits = append(f.Limits, "any fields")
	}
	if schema["nullable"] == true {
		f.Limits = append(f.Limits, "null is a value")
	}
}

// rule adds the CEL rules of a schema, except those that other fields already express.
func (f *Field) rule(schema map[string]any) {
	for _, rule := range rulesOf(schema) {
		text := textOf(rule, "rule")
		switch {
		case strings.Join(strings.Fields(text), "") == "self==oldSelf":
			f.Immutable = true
		case demanded(text) != "":
		default:
			f.Rules = append(f.Rules, strings.Join(strings.Fields(cmp.Or(textOf(rule, "message"), text)), " "))
		}
	}
}

// requiredToCreate returns the fields, as paths below a schema, that its rules require unless the resource is only observed. Upjet
// generates such rules on the spec, instead of required fields in forProvider.
func requiredToCreate(schema map[string]any) []string {
	var paths []string
	for _, rule := range rulesOf(schema) {
		if path := demanded(textOf(rule, "rule")); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

var demand = regexp.MustCompile(`^!\(.*'Create' in self\.managementPolicies.*?\) \|\| has\(self\.(forProvider\.\w+)\)`)

// demanded returns the path of the field that such a rule requires, or "".
func demanded(rule string) string {
	m := demand.FindStringSubmatch(strings.Join(strings.Fields(rule), " "))
	if m == nil {
		return ""
	}
	parent, name, _ := strings.Cut(m[1], ".")
	if bare, ok := strings.CutSuffix(name, "__"); ok && strings.HasPrefix(bare, "__") {
		name = bare[2:] // a reserved word of CEL, which is escaped
	}
	return parent + "." + name
}

func rulesOf(schema map[string]any) []map[string]any {
	list, _ := schema["x-kubernetes-validations"].([]any)
	var rules []map[string]any
	for _, v := range list {
		if rule, ok := v.(map[string]any); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

func textOf(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// plainly returns a value as a user would write it.
func plainly(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}
