package schema

import (
	"reflect"
	"slices"
	"strings"
)

// A location is one schema within the schema of a version.
type location struct{ version, path string }

func (p location) at(rule Rule, from, to any, breaking bool) Change {
	return Change{Rule: rule, Version: p.version, Path: p.path, From: said(from), To: said(to), Breaking: breaking}
}

func (p location) property(name string) location {
	if p.path != "" {
		name = p.path + "." + name
	}
	return location{p.version, name}
}

// words are keywords that only people read.
var words = []string{"description", "title", "example", "externalDocs", "id", "$schema"}

// schema compares two schemas and all that is below them. New properties are no change for
// those who do not use them; everything else that differs is judged where it differs.
func (c *comparison) schema(at location, was, is map[string]any) {
	var differ []string
	for _, key := range keysOf(was, is) {
		from, to := was[key], is[key]
		switch {
		case key == "properties":
			c.properties(at, object(from), object(to), c.loses && is["x-kubernetes-preserve-unknown-fields"] == true)
		case c.loses && slices.Contains(harmless, key):
		case key == "items" && both(from, to):
			c.schema(location{at.version, at.path + "[]"}, object(from), object(to))
		case key == "additionalProperties" && both(from, to):
			c.schema(at.property("*"), object(from), object(to))
		case reflect.DeepEqual(from, to):
		case slices.Contains(words, key):
			c.Words = true
		case key == "x-kubernetes-validations":
			c.validations(at, list(from), list(to))
		default:
			differ = append(differ, key)
		}
	}
	if len(differ) > 0 {
		c.judge(at, was, is, differ)
	}
}

func both(a, b any) bool { return object(a) != nil && object(b) != nil }

// properties compares the properties of an object. A dropped property is not lost if unknown fields are preserved.
func (c *comparison) properties(at location, was, is map[string]any, keeps bool) {
	for _, name := range keysOf(was, is) {
		from, declared := was[name]
		to, kept := is[name]
		below := at.property(name)
		switch {
		case !declared:
			c.Added = append(c.Added, below.at("field", nil, nil, false))
		case !kept && keeps:
		case !kept:
			c.add(below.at(Field, nil, nil, true))
		default:
			c.schema(below, object(from), object(to))
		}
	}
}

// validations compares rules in CEL by what they demand.
func (c *comparison) validations(at location, was, is []any) {
	before, after := rules(was), rules(is)
	for _, rule := range after {
		if !slices.Contains(before, rule) {
			what := Validation
			if strings.Contains(rule, "oldSelf") {
				what = Immutable
			}
			c.add(Change{Rule: what, Version: at.version, Path: at.path, To: rule, Breaking: true})
		}
	}
	for _, rule := range before {
		if !slices.Contains(after, rule) {
			c.add(Change{Rule: Validation, Version: at.version, Path: at.path, From: rule})
		}
	}
	c.Words = true // at least the message of a rule
}

func rules(validations []any) []string {
	var rules []string
	for _, v := range validations {
		rule, _ := object(v)["rule"].(string)
		rules = append(rules, rule)
	}
	return rules
}

// judge adds the effect of differing keywords of one place.
func (c *comparison) judge(at location, was, is map[string]any, differ []string) {
	broken, known := crdify(was, is, differ)
	for _, key := range differ {
		from, to := was[key], is[key]
		if key == "required" {
			c.required(at, list(from), list(to))
			continue
		}
		c.add(at.at(Rule(key), from, to, broken[key] || !known[key] && !loosens(key, from, to)))
	}
}

// required adds a change for every field that becomes required, or optional.
func (c *comparison) required(at location, was, is []any) {
	added := slices.DeleteFunc(slices.Clone(is), func(name any) bool { return slices.Contains(was, name) })
	dropped := slices.DeleteFunc(slices.Clone(was), func(name any) bool { return slices.Contains(is, name) })
	for i, v := range append(added, dropped...) {
		name, _ := v.(string)
		c.add(at.property(name).at(Required, nil, nil, i < len(added)))
	}
}

// keepers are keywords without which values would be dropped or merged differently. All other keywords that crdify does
// not know only refuse values, so their removal is harmless.
var keepers = []string{
	"additionalProperties", "items",
	"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
	"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
	"allOf", "anyOf", "oneOf", "not", // crdify counts schemas in them that go as removed
}

// wideners are keywords that only allow more.
var wideners = []string{"additionalProperties", "items", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"}

// loosens reports whether a keyword that crdify does not know takes what was taken before.
func loosens(key string, from, to any) bool {
	switch {
	case to == nil || to == false && !slices.Contains(keepers, key):
		return !slices.Contains(keepers, key)
	case from == nil || from == false:
		return slices.Contains(wideners, key)
	}
	return false
}
