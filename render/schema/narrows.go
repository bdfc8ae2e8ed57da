package schema

import (
	"math/big"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// narrows reports whether the change of a keyword drops or refuses a value that was taken before. The other keywords of
// the two schemas count as far as they decide that. An unreadable keyword narrows.
func (c *comparison) narrows(key string, was, is map[string]any) bool {
	from, to := was[key], is[key]
	switch key {
	case "type":
		return !within(typesOf(was), typesOf(is))
	case "x-kubernetes-int-or-string":
		return was["type"] == is["type"] && !within(typesOf(was), typesOf(is))
	case "nullable":
		if c.values && is["type"] == nil { // in a keyword that combines, null is of no type
			return false
		}
		refused := was["enum"] != nil && !slices.Contains(list(was["enum"]), nil) // null is one of them, or refused
		return from == true && to != true && !refused
	case "enum":
		return to != nil && (from == nil || !subset(list(from), list(to)))
	case "format":
		return enforced(is) && (!enforced(was) || from == nil || from != to)
	case "pattern":
		return to != nil
	case "maximum", "exclusiveMaximum":
		return tighter(limitOf(was, "maximum", "exclusiveMaximum", 1), limitOf(is, "maximum", "exclusiveMaximum", 1), 1)
	case "minimum", "exclusiveMinimum":
		return tighter(limitOf(was, "minimum", "exclusiveMinimum", -1), limitOf(is, "minimum", "exclusiveMinimum", -1), -1)
	case "maxProperties": // an object that drops unknown fields has no more than it declares
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
	return to != nil // a keyword that Headgate does not know only refuses
}

// leastProperties is how many properties an object has at least, which the old schema took: those that it needs, and those
// that the new one fills in.
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

// limits are the keywords that refuse a value for itself, each with those that it is read with.
var limits = map[string][]string{
	"enum": nil, "pattern": nil, "maxLength": nil, "minLength": nil, "maxItems": nil, "minItems": nil, "maxProperties": nil, "minProperties": nil,
	"maximum": {"exclusiveMaximum"}, "exclusiveMaximum": {"maximum"}, "minimum": {"exclusiveMinimum"}, "exclusiveMinimum": {"minimum"},
}

// refusedBefore reports whether a keyword that combines schemas refused before what a limit refuses now.
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

// combined reports whether the keywords of a schema that combine others take only values that another schema takes.
func combined(was, is map[string]any) bool {
	fits := func(part any) bool { return covered(object(part), is) }
	all := func(key string) bool {
		parts := list(was[key])
		return len(parts) > 0 && !slices.ContainsFunc(parts, func(part any) bool { return !fits(part) })
	}
	return slices.ContainsFunc(list(was["allOf"]), fits) || all("anyOf") || all("oneOf")
}

// covered reports whether all that a schema takes is taken by another one, by one keyword or by what they combine.
func covered(was, is map[string]any) bool { return implies(was, is) || combined(was, is) }

func scalar(kind any) bool { return kind != nil && kind != "object" && kind != "array" }

// elements compares what is in a map or a list where only one of the schemas declares it.
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

// everything is the schema that takes all values.
func everything(values bool) map[string]any {
	if values {
		return map[string]any{}
	}
	return anything
}

// typesOf are the types of values that a schema takes; nil are all types.
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
		return format == "float" // which has a range
	case "integer": // an API server looks at the range of the format wherever it looks at the number
		return format == "int32"
	case "boolean", "object", "array":
		return false // these formats are words
	case "string":
		s.Type = spec.StringOrArray{kind}
	}
	return validation.StripUnsupportedFormatsPostProcess(s) != nil || s.Format != "" || schema["format"] != nil && format == ""
}

// A limit is how much a value may be.
type limit struct {
	value     *big.Rat // nil: it cannot be read
	exclusive bool
	is        bool
}

// limitOf is a limit in a schema; sign is 1 for one above and -1 for one below. One of integers is never exclusive.
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

// divides reports whether every multiple of a number before is one of the number after.
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

// combines compares the schemas in a keyword that combines them.
func (c *comparison) combines(key string, was, is map[string]any) bool {
	from, to := was[key], is[key]
	if to == nil {
		return false
	}
	fits := func(v, now any) bool { return covered(object(v), object(now)) }
	all := func(now any) bool { return fits(was, now) }
	switch key {
	case "not":
		return from == nil || !implies(object(to), object(from)) // what it refuses now, it refused
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
	some := func(v any) bool { // a value of v is one of an alternative
		return slices.ContainsFunc(list(to), func(now any) bool { return fits(v, now) })
	}
	each := func(key string) bool {
		parts := list(was[key])
		return len(parts) > 0 && !slices.ContainsFunc(parts, func(v any) bool { return !some(v) })
	}
	return !some(was) && !each("anyOf") && !each("oneOf") && !slices.ContainsFunc(list(was["allOf"]), some)
}

// intOrString are the alternatives that every field may name that is an integer or a string.
var intOrString = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}

// implies reports whether a schema takes every value that another one takes.
func implies(was, is map[string]any) bool {
	sub := comparison{values: true}
	sub.schema(location{}, was, is)
	return len(sub.Breaking()) == 0
}
