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
	from, to := was[key], is[key]
	switch key {
	case "type":
		return !within(typesOf(was), typesOf(is))
	case "x-kubernetes-int-or-string":
		return was["type"] == is["type"] && !within(typesOf(was), typesOf(is))
	case "nullable":
		if c.values && is["type"] == nil { // inside a combining keyword, null has no type
			return false
		}
		refused := was["enum"] != nil && !slices.Contains(list(was["enum"]), nil) // null is in the enum, or was refused
		return from == true && to != true && !refused
	case "enum":
		return to != nil && (from == nil || !subset(list(from), list(to)))
	case "format":
		return enforced(is) && (!enforced(was) || from == nil || from != to)
	case "maximum", "exclusiveMaximum":
		return tighter(limitOf(was, "maximum", "exclusiveMaximum", 1), limitOf(is, "maximum", "exclusiveMaximum", 1), 1)
	case "minimum", "exclusiveMinimum":
		return tighter(limitOf(was, "minimum", "exclusiveMinimum", -1), limitOf(is, "minimum", "exclusiveMinimum", -1), -1)
	case "maxProperties": // an object that drops unknown fields has only declared fields
		if was["type"] == "object" && was["additionalProperties"] == nil && !keeps(was) && was["x-kubernetes-embedded-resource"] != true && !c.values &&
			!tighter(limit{value: big.NewRat(int64(len(object(was["properties"]))), 1), is: true}, limitOf(is, key, "", 1), 1) {
			return false
		}
		return tighter(limitOf(was, key, "", 1), limitOf(is, key, "", 1), 1)
	case "maxLength", "maxItems":
		return tighter(limitOf(was, key, "", 1), limitOf(is, key, "", 1), 1)
	case "minLength", "minItems", "minProperties":
		least := limit{value: new(big.Rat), is: true}
		if key == "minProperties" {
			least.value.SetInt64(int64(c.leastProperties(was, is)))
		}
		if known := limitOf(was, key, "", -1); tighter(least, known, -1) {
			least = known
		}
		return tighter(least, limitOf(is, key, "", -1), -1)
	case "multipleOf":
		return to != nil && (!divides(was, is) || enforced(is) && !enforced(was))
	case "uniqueItems":
		return to == true
	case "allOf", "anyOf", "oneOf", "not":
		return c.combines(key, was, is)
	case "x-kubernetes-list-type":
		return to == "set" || to == "map"
	case "x-kubernetes-list-map-keys":
		return is["x-kubernetes-list-type"] == "map" && !subset(list(from), list(to))
	case "x-kubernetes-map-type":
		return false
	case "x-kubernetes-preserve-unknown-fields":
		return from == true && to != true && !scalar(is["type"])
	case "x-kubernetes-embedded-resource":
		return to == true || from == true && !keeps(is)
	case "additionalProperties", "items":
		return c.elements(key, was, is)
	}
	return to != nil // unknown keywords are assumed to only refuse values
}

// leastProperties returns the minimum number of properties of an object that the old schema accepted: required properties, and
// those with a default in the new schema.
func (c *comparison) leastProperties(was, is map[string]any) int {
	has := map[string]bool{}
	for _, name := range texts(was["required"]) {
		has[name] = true
	}
	for name := range object(is["properties"]) {
		has[name] = has[name] || c.filled(is, name) != nil
	}
	n := 0
	for _, one := range has {
		if one {
			n++
		}
	}
	return n
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
	fits := func(part any) bool { return covered(object(part), is) }
	all := func(key string) bool {
		parts := list(was[key])
		return len(parts) > 0 && !slices.ContainsFunc(parts, func(part any) bool { return !fits(part) })
	}
	return slices.ContainsFunc(list(was["allOf"]), fits) || all("anyOf") || all("oneOf")
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
	case is.value == nil:
		return true
	case !was.is, was.value == nil:
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
	if to == nil {
		return false
	}
	fits := func(v, now any) bool { return covered(object(v), object(now)) }
	all := func(now any) bool { return fits(was, now) }
	switch key {
	case "not":
		return from == nil || !implies(object(to), object(from)) // it refuses only values that it refused before
	case "oneOf":
		if parts := list(to); len(parts) == 1 && all(parts[0]) {
			return false
		}
		return from == nil || !subset(list(from), list(to)) || len(list(from)) != len(list(to)) || !subset(list(to), list(from))
	case "allOf":
		return slices.ContainsFunc(list(to), func(now any) bool { return !all(now) })
	}
	if is["x-kubernetes-int-or-string"] == true && reflect.DeepEqual(to, intOrString) {
		return false
	}
	some := func(v any) bool { // whether a value of v matches one of the alternatives
		return slices.ContainsFunc(list(to), func(now any) bool { return fits(v, now) })
	}
	each := func(key string) bool {
		parts := list(was[key])
		return len(parts) > 0 && !slices.ContainsFunc(parts, func(v any) bool { return !some(v) })
	}
	return !some(was) && !each("anyOf") && !each("oneOf") && !slices.ContainsFunc(list(was["allOf"]), some)
}

// intOrString lists the alternatives that any int-or-string field may have.
var intOrString = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}

// implies reports whether a schema accepts every value that another schema accepts.
func implies(was, is map[string]any) bool {
	sub := comparison{values: true}
	sub.schema(location{}, was, is)
	return len(sub.Breaking()) == 0
}
