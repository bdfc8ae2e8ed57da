package kinds

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/check"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// Crossplane copies only these keywords of an XRD's schema into a CRD: of the whole, of spec and of status. The type is always object.
var (
	ofAll    = []string{"type", "description", "properties", "x-kubernetes-validations"}
	ofSpec   = append([]string{"required", "x-kubernetes-preserve-unknown-fields", "oneOf"}, ofAll...)
	ofStatus = append([]string{"required", "oneOf"}, ofAll...)
)

// ignored warns about the parts of an XRD's schemas that Crossplane drops: keywords and fields that a CRD does not have or that it does
// not copy. The rules of these parts hold for no object.
func ignored(xrd *unstructured.Unstructured) []check.Problem {
	var all []check.Problem
	versions, _, _ := unstructured.NestedSlice(xrd.Object, "spec", "versions")
	for i, v := range versions {
		version, _ := v.(map[string]any)
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		at := fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema", i)
		for _, field := range slices.Concat(unknown(schema), dropped(schema)) {
			all = append(all, check.Problem{Field: at + "." + field, Message: "Crossplane ignores it"})
		}
	}
	return all
}

// unknown returns the keywords that do not exist.
func unknown(schema map[string]any) []string {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil
	}
	strict, err := kjson.UnmarshalStrict(raw, &extensionsv1.JSONSchemaProps{}, kjson.DisallowUnknownFields)
	if err != nil {
		return nil // another rule reports it
	}
	var fields []string
	for _, e := range strict {
		if field, ok := errors.AsType[kjson.FieldError](e); ok {
			fields = append(fields, field.FieldPath())
		}
	}
	return fields
}

// dropped returns the keywords that exist and that Crossplane does not copy.
func dropped(schema map[string]any) []string {
	properties, _ := schema["properties"].(map[string]any)
	fields := others("", schema, append(ofAll, "required"))
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		below, _ := properties[name].(map[string]any)
		switch name {
		case "apiVersion", "kind", "metadata":
		case "spec":
			fields = append(fields, others("properties.spec.", below, ofSpec)...)
		case "status":
			fields = append(fields, others("properties.status.", below, ofStatus)...)
		default:
			fields = append(fields, "properties."+name)
		}
	}
	return fields
}

// others returns the keywords of a schema that are not known, and that change what the schema accepts.
func others(at string, schema map[string]any, known []string) (fields []string) {
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		if !slices.Contains(known, key) && slices.Contains(constraints, key) {
			fields = append(fields, at+key)
		}
	}
	return fields
}

// constraints are the keywords of an object's schema that change what it accepts or what is stored.
var constraints = strings.Fields("additionalProperties allOf anyOf default enum maxProperties minProperties not nullable oneOf required " +
	"x-kubernetes-embedded-resource x-kubernetes-map-type x-kubernetes-preserve-unknown-fields")
