package schema

import (
	"math/big"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// narrows reports whether the change of a keyword drops or refuses a value that was accepted before. It considers other keywords of
// the two schemas if they affect that. An unreadable keyword narrows.
func (c *comparison) narrows(key string, was, is map[string]any) bool {
	switch key {
	case "allOf", "anyOf", "oneOf", "not":
		return c.combines(key, was, is)
	case "additionalProperties", "items":
		return c.elements(key, was, is)
	}
	if narrows, known := narrowing[key]; known {
		return narrows(c, was, is)
	}
	return is[key] != nil // unknown keywords are assumed to only refuse values
}

// narrowing judges each keyword that compares without the schemas below it.
var narrowing = map[string]func(c *comparison, was, is map[string]any) bool{
	"type": ofTypes,
	"x-kubernetes-int-or-string": func(c *comparison, was, is map[string]any) bool {
		return was["type"] == is["type"] && ofTypes(c, was, is)
	},
	"nullable": (*comparison).refusesNull,
	"enum": func(_ *comparison, was, is map[string]any) bool {
		return is["enum"] != nil && (was["enum"] == nil || !subset(list(was["enum"]), list(is["enum"])))
	},
	"format": func(_ *comparison, was, is map[string]any) bool {
		return enforced(is) && (!enforced(was) || was["format"] != is["format"])
	},

	"maximum": ofMaximum, "exclusiveMaximum": ofMaximum,
	"minimum": ofMinimum, "exclusiveMinimum": ofMinimum,
	"maxLength": ofMost("maxLength"), "maxItems": ofMost("maxItems"), "maxProperties": (*comparison).ofMostProperties,
	"minLength": ofLeast("minLength"), "minItems": ofLeast("minItems"), "minProperties": (*comparison).ofLeastProperties,
	"multipleOf": func(_ *comparison, was, is map[string]any) bool {
		return is["multipleOf"] != nil && (!divides(was, is) || enforced(is) && !enforced(was))
	},

	"uniqueItems":            becomes("uniqueItems", true),
	"x-kubernetes-list-type": becomes("x-kubernetes-list-type", "set", "map"),
	"x-kubernetes-map-type":  becomes("x-kubernetes-map-type"),
	"x-kubernetes-list-map-keys": func(_ *comparison, was, is map[string]any) bool {
		const keys = "x-kubernetes-list-map-keys"
		return is["x-kubernetes-list-type"] == "map" && !subset(list(was[keys]), list(is[keys]))
	},
	"x-kubernetes-preserve-unknown-fields": func(_ *comparison, was, is map[string]any) bool {
		return keeps(was) && !keeps(is) && !scalar(is["type"])
	},
	"x-kubernetes-embedded-resource": func(_ *comparison, was, is map[string]any) bool {
		return isResource(is) || isResource(was) && !keeps(is)
	},
}

func isResource(schema map[string]any) bool { return schema["x-kubernetes-embedded-resource"] == true }

func ofTypes(_ *comparison, was, is map[string]any) bool { return !within(typesOf(was), typesOf(is)) }

// becomes returns the judgement of a keyword that narrows with some values.
func becomes(key string, values ...any) func(*comparison, map[string]any, map[string]any) bool {
	return func(_ *comparison, _, is map[string]any) bool { return slices.Contains(values, is[key]) }
}

// refusesNull reports whether null was accepted and is not any more.
func (c *comparison) refusesNull(was, is map[string]any) bool {
	switch {
	case was["nullable"] != true, is["nullable"] == true:
		return false
	case c.values && is["type"] == nil: // inside a combining keyword, null has no type
		return false
	}
	return was["enum"] == nil || slices.Contains(list(was["enum"]), nil)
}

func ofMaximum(_ *comparison, was, is map[string]any) bool {
	return tighter(limitOf(was, "maximum", "exclusiveMaximum", 1), limitOf(is, "maximum", "exclusiveMaximum", 1), 1)
}

func ofMinimum(_ *comparison, was, is map[string]any) bool {
	return tighter(limitOf(was, "minimum", "exclusiveMinimum", -1), limitOf(is, "minimum", "exclusiveMinimum", -1), -1)
}

// ofMost returns the judgement of an upper limit.
func ofMost(key string) func(*comparison, map[string]any, map[string]any) bool {
	return func(_ *comparison, was, is map[string]any) bool {
		return tighter(limitOf(was, key, "", 1), limitOf(is, key, "", 1), 1)
	}
}

// ofMostProperties judges the maximum number of properties. An object that drops unknown fields had only declared ones.
func (c *comparison) ofMostProperties(was, is map[string]any) bool {
	now := limitOf(is, "maxProperties", "", 1)
	if !c.values && drops(was) && !tighter(count(len(object(was["properties"]))), now, 1) {
		return false
	}
	return tighter(limitOf(was, "maxProperties", "", 1), now, 1)
}

// drops reports whether a schema is that of an object without undeclared fields.
func drops(schema map[string]any) bool {
	return schema["type"] == "object" && schema["additionalProperties"] == nil && !keeps(schema) && !isResource(schema)
}

// ofLeast returns the judgement of a lower limit of a number of parts.
func ofLeast(key string) func(*comparison, map[string]any, map[string]any) bool {
	return func(_ *comparison, was, is map[string]any) bool { return raised(key, 0, was, is) }
}

func (c *comparison) ofLeastProperties(was, is map[string]any) bool {
	return raised("minProperties", c.leastProperties(was, is), was, is)
}

// raised reports whether a lower limit is higher than before. Every value had at least so many parts, whatever the old limit.
func raised(key string, had int, was, is map[string]any) bool {
	least := count(had)
	if known := limitOf(was, key, "", -1); tighter(least, known, -1) {
		least = known
	}
	return tighter(least, limitOf(is, key, "", -1), -1)
}

// leastProperties returns the minimum number of properties of an object that the old schema accepted: required properties, and
// those with a default in the new schema.
func (c *comparison) leastProperties(was, is map[string]any) int {
	has := map[string]bool{}
	for _, name := range texts(was["required"]) {
		has[name] = true
	}
	for name := range object(is["properties"]) {
		if c.filled(is, name) != nil {
			has[name] = true
		}
	}
	return len(has)
}

// limits lists the keywords that refuse a value on their own, each with the keywords that modify it.
var limits = map[string][]string{
	"enum": nil, "pattern": nil, "maxLength": nil, "minLength": nil, "maxItems": nil, "minItems": nil, "maxProperties": nil, "minProperties": nil,
	"maximum": {"exclusiveMaximum"}, "exclusiveMaximum": {"maximum"}, "minimum": {"exclusiveMinimum"}, "exclusiveMinimum": {"minimum"},
}

// refusedBefore reports whether a combining keyword already refused the values that a limit now refuses.
func refusedBefore(key string, was, is map[string]any) bool {
	beside, isLimit := limits[key]
	if !isLimit || is[key] == nil {
		return false
	}
	now := map[string]any{key: is[key]}
	for _, other := range beside {
		if is[other] != nil {
			now[other] = is[other]
		}
	}
	return combined(was, now)
}

// combined reports whether the combining keywords of a schema accept only values that another schema accepts.
func combined(was, is map[string]any) bool {
	return guarantees(was, func(part any) bool { return covered(object(part), is) })
}

// guarantees reports whether the combining keywords of a schema accept only values of schemas with a property: of one schema of allOf, or
// of all alternatives.
func guarantees(schema map[string]any, has func(part any) bool) bool {
	return slices.ContainsFunc(list(schema["allOf"]), has) || all(list(schema["anyOf"]), has) || all(list(schema["oneOf"]), has)
}

// all reports whether there are parts, and all of them have a property.
func all(parts []any, has func(part any) bool) bool {
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(part any) bool { return !has(part) })
}

// covered reports whether one schema accepts all values of another, because of a single keyword or a combining one.
func covered(was, is map[string]any) bool { return implies(was, is) || combined(was, is) }

func scalar(kind any) bool { return kind != nil && kind != "object" && kind != "array" }

// elements compares the elements of a map or a list that only one of the schemas declares.
func (c *comparison) elements(key string, was, is map[string]any) bool {
	switch from, to := was[key], is[key]; {
	case to == nil:
		return !c.values && from != false && !keeps(is) && !scalar(is["type"])
	case to == true:
		return object(from) != nil && !flat(object(from)) || from == nil && keeps(was)
	case from == nil && (c.values || keeps(was)), from == true:
		return object(to) == nil || (&comparison{values: c.values}).narrowed(location{}, everything(c.values), object(to))
	case from == nil:
		return false
	}
	return was[key] != false
}

// everything returns the schema that accepts all values.
func everything(values bool) map[string]any {
	if values {
		return map[string]any{}
	}
	return anything
}

// typesOf returns the types of values that a schema accepts; nil means all types.
func typesOf(schema map[string]any) []string {
	if schema["x-kubernetes-int-or-string"] == true {
		return []string{"integer", "string"}
	}
	switch kind, _ := schema["type"].(string); {
	case schema["type"] == nil:
		return nil
	case kind == "number":
		return []string{"integer", "number"}
	default:
		return []string{kind}
	}
}

func within(was, is []string) bool {
	return is == nil || was != nil && !slices.ContainsFunc(was, func(kind string) bool { return !slices.Contains(is, kind) })
}

// subset reports whether all values are among others.
func subset(values, others []any) bool {
	return !slices.ContainsFunc(values, func(v any) bool {
		return !slices.ContainsFunc(others, func(other any) bool { return asJSON(v) == asJSON(other) })
	})
}

// same reports whether two lists have the same values, in any order.
func same(values, others []any) bool {
	return len(values) == len(others) && subset(values, others) && subset(others, values)
}

// enforced reports whether an API server refuses values that do not have the format of a schema.
func enforced(schema map[string]any) bool {
	format, _ := schema["format"].(string)
	if format == "password" { // any text
		return false
	}
	kind, _ := schema["type"].(string)
	s := &spec.Schema{SchemaProps: spec.SchemaProps{Format: format}}
	switch kind {
	case "number":
		return format == "float" // the format float has a range
	case "integer": // an API server checks the range of the format wherever it checks the number
		return format == "int32"
	case "boolean", "object", "array":
		return false // formats of these types have no effect
	case "string":
		s.Type = spec.StringOrArray{kind}
	}
	return validation.StripUnsupportedFormatsPostProcess(s) != nil || s.Format != "" || schema["format"] != nil && format == ""
}

// A limit is a bound of a value.
type limit struct {
	value     *big.Rat // nil if it cannot be read
	exclusive bool
	is        bool
}

// count is a number of parts.
func count(n int) limit { return limit{value: big.NewRat(int64(n), 1), is: true} }

// limitOf returns a limit of a schema. sign is 1 for an upper limit and -1 for a lower limit. Limits of integers are never
// exclusive.
func limitOf(schema map[string]any, key, exclusive string, sign int64) limit {
	v := schema[key]
	if v == nil {
		return limit{}
	}
	l := limit{is: true, exclusive: exclusive != "" && schema[exclusive] == true}
	value, ok := new(big.Rat).SetString(asJSON(v))
	if !ok {
		return l
	}
	l.value = value
	if l.exclusive && schema["type"] == "integer" && value.IsInt() {
		l.value, l.exclusive = new(big.Rat).Sub(value, big.NewRat(sign, 1)), false
	}
	return l
}

func tighter(was, is limit, sign int) bool {
	switch {
	case !is.is:
		return false
	case is.value == nil, was.value == nil: // one of them cannot be read, or there was none
		return true
	}
	by := is.value.Cmp(was.value) * sign
	return by < 0 || by == 0 && is.exclusive && !was.exclusive
}

// divides reports whether every multiple of the old number is a multiple of the new number.
func divides(was, is map[string]any) bool {
	from, to := limitOf(was, "multipleOf", "", 1), limitOf(is, "multipleOf", "", 1)
	if !from.is && was["type"] == "integer" {
		from = limit{value: big.NewRat(1, 1), is: true}
	}
	if from.value == nil || to.value == nil || to.value.Sign() == 0 {
		return false
	}
	return new(big.Rat).Quo(from.value, to.value).IsInt()
}

// combines compares the schemas in a combining keyword.
func (c *comparison) combines(key string, was, is map[string]any) bool {
	from, to := was[key], is[key]
	fits := func(now any) bool { return covered(was, object(now)) }
	switch {
	case to == nil:
		return false
	case key == "not":
		return from == nil || !implies(object(to), object(from)) // it refuses only values that it refused before
	case key == "allOf":
		return slices.ContainsFunc(list(to), func(now any) bool { return !fits(now) })
	case key == "anyOf":
		return !isEither(is) && !accepted(was, list(to))
	case len(list(to)) == 1 && fits(list(to)[0]):
		return false
	}
	return from == nil || !same(list(from), list(to))
}

// accepted reports whether each value of a schema matches one of some alternatives.
func accepted(was map[string]any, alternatives []any) bool {
	some := func(v any) bool {
		return slices.ContainsFunc(alternatives, func(now any) bool { return covered(object(v), object(now)) })
	}
	return some(was) || guarantees(was, some)
}

// isEither reports whether a schema lists the alternatives that any int-or-string field may have.
func isEither(schema map[string]any) bool {
	return schema["x-kubernetes-int-or-string"] == true && reflect.DeepEqual(schema["anyOf"], intOrString)
}

// intOrString lists the alternatives that any int-or-string field may have.
var intOrString = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}

// implies reports whether a schema accepts every value that another schema accepts.
func implies(was, is map[string]any) bool {
	sub := comparison{values: true}
	sub.schema(location{}, was, is)
	return len(sub.Breaking()) == 0
}
