package schema

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// retyping lists the rules of changes after which a CEL rule may no longer compile, or may cost more.
var retyping = []Rule{
	Validation, Immutable, Field, "type", "items", "additionalProperties", "maxLength", "maxItems", "maxProperties", "enum", "format",
	"x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
	"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
}

// compiles finds CEL rules for which an API server refuses the new definition but did not refuse the old one. That takes
// milliseconds, so it checks them only if a change may have that effect.
func (c *comparison) compiles(before, after *unstructured.Unstructured) {
	was, is := asCRD(before), asCRD(after)
	if was == nil || is == nil || !c.mayRefuse(is) {
		return
	}
	refused := rulesRefused(is)
	if len(refused) == 0 {
		return
	}
	known, told := rulesRefused(was), map[location]bool{}
	for _, r := range refused {
		at := placeOf(is, r.Field)
		if slices.Contains(known, r) || told[at] { // one reason for a place is enough
			continue
		}
		told[at] = true
		what := r.Problem
		if i := strings.LastIndex(what, "}: "); i >= 0 { // the error quotes the whole rule before its reason
			what = what[i+len("}: "):]
		}
		what, _, _ = strings.Cut(what, "\n")
		what, _, _ = strings.Cut(what, " (try")
		c.add(Change{Rule: Refused, Version: at.version, Path: at.path, Why: "has a rule that the API server refuses: " + what, Breaking: true})
	}
}

// mayRefuse reports whether the definition has rules, and either they or what they read has changed.
func (c *comparison) mayRefuse(crd *unstructured.Unstructured) bool {
	retypes := slices.ContainsFunc(c.Changes, func(c Change) bool { return slices.Contains(retyping, c.Rule) })
	return c.rules || retypes && hasRules(crd.Object["spec"])
}

// rulesRefused returns why an API server refuses the CEL rules of a CRD.
func rulesRefused(crd *unstructured.Unstructured) []Refusal {
	return slices.DeleteFunc(Refusals(context.Background(), crd), func(r Refusal) bool {
		return !strings.Contains(r.Field, "x-kubernetes-validations") && !strings.Contains(r.Problem, "CEL")
	})
}

// ofCRD lists the fields that the specs of a CRD and an MRD share.
var ofCRD = []string{"group", "names", "scope", "versions", "conversion"}

// asCRD returns a CRD, or the part of an MRD that becomes one; nil for other objects.
func asCRD(u *unstructured.Unstructured) *unstructured.Unstructured {
	spec := u.Object["spec"]
	switch id := manifest.IDOf(u); {
	case crossplane.IsMRD(id):
		shared := maps.Clone(object(spec))
		maps.DeleteFunc(shared, func(key string, _ any) bool { return !slices.Contains(ofCRD, key) })
		spec = shared
	case !id.IsCRD():
		return nil
	}
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}}
	crd.SetName(u.GetName())
	return crd
}

// hasRules reports whether a schema, or one below it, has a CEL rule.
func hasRules(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if v["x-kubernetes-validations"] != nil {
			return true
		}
		for _, below := range v {
			if hasRules(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasRules)
	}
	return false
}

var (
	// The API server stores a schema that all versions share outside of the versions.
	inVersion = regexp.MustCompile(`^spec\.(?:versions\[(\d+)\]\.schema|validation)\.openAPIV3Schema\.?(.*)$`)
	inSchema  = regexp.MustCompile(`properties\[([^\]]*)\]|\bitems\b|\badditionalProperties\b`)
)

// placeOf returns the place of a rule, from its path in an error of the API server.
func placeOf(crd *unstructured.Unstructured, field string) location {
	m := inVersion.FindStringSubmatch(field)
	if m == nil {
		return location{}
	}
	var at location
	all := list(object(crd.Object["spec"])["versions"])
	i, err := strconv.Atoi(m[1])
	if shared := m[1] == "" && len(all) == 1; shared || err == nil && i < len(all) {
		at.version, _ = object(all[i])["name"].(string)
	}
	path, _, _ := strings.Cut(m[2], "x-kubernetes-validations")
	for _, step := range inSchema.FindAllStringSubmatch(path, -1) {
		switch {
		case step[1] != "":
			at = at.property(step[1])
		case step[0] == "items":
			at.path += "[]"
		default:
			at = at.property("*")
		}
	}
	return at
}
