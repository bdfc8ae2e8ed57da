package main

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Names that the story uses for every resource.
const (
	name      = "first"
	namespace = "shop"
)

// resourceOf returns a resource in the storage version of a CRD.
func resourceOf(crd apiextensionsv1.CustomResourceDefinition) (map[string]any, error) {
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	if at < 0 {
		return nil, errors.New("no version is the storage version")
	}
	version := crd.Spec.Versions[at]
	metadata := map[string]any{"name": name}
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		metadata["namespace"] = namespace
	}
	resource := map[string]any{
		"apiVersion": crd.Spec.Group + "/" + version.Name,
		"kind":       crd.Spec.Names.Kind,
		"metadata":   metadata,
	}
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return resource, nil
	}
	spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
	value, _ := valueOf(spec).(map[string]any)
	if value == nil {
		value = map[string]any{}
	}
	if _, ok := spec.Properties["managementPolicies"]; ok {
		value["managementPolicies"] = []any{"Observe"}
	}
	resource["spec"] = value
	return resource, nil
}

// valueOf returns the smallest value that a schema accepts, as far as that is possible without evaluating rules. It leaves fields
// with a default to the server.
func valueOf(s apiextensionsv1.JSONSchemaProps) any {
	switch {
	case len(s.Enum) > 0:
		var v any
		if json.Unmarshal(s.Enum[0].Raw, &v) == nil {
			return v
		}
	case s.XEmbeddedResource:
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": namespace}}
	case s.XIntOrString:
		return 1
	case s.Type == "string":
		return text(s)
	case s.Type == "boolean":
		return false
	case s.Type == "integer", s.Type == "number":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 1
	case s.Type == "array":
		return list(s)
	}
	return object(s)
}

func object(s apiextensionsv1.JSONSchemaProps) map[string]any {
	fields := map[string]any{}
	for _, required := range s.Required {
		if field := s.Properties[required]; field.Default == nil {
			fields[required] = valueOf(field)
		}
	}
	return fields
}

func list(s apiextensionsv1.JSONSchemaProps) []any {
	items := []any{}
	if s.MinItems == nil || s.Items == nil || s.Items.Schema == nil {
		return items
	}
	for range *s.MinItems {
		items = append(items, valueOf(*s.Items.Schema))
	}
	return items
}

// texts are tried in turn if a pattern does not match a plain word.
var texts = []string{"sample", "Sample", "1", "1.0", "10.0.0.0/16", "10.0.0.1", "https://example.org", "arn:aws:iam::123456789012:role/sample", "2006-01-02T15:04:05Z"}

func text(s apiextensionsv1.JSONSchemaProps) string {
	if s.Format == "date-time" {
		return "2006-01-02T15:04:05Z"
	}
	if pattern, err := regexp.Compile(s.Pattern); err == nil {
		if at := slices.IndexFunc(texts, pattern.MatchString); at >= 0 {
			return cut(texts[at], s)
		}
	}
	return cut(texts[0], s)
}

// cut pads or shortens a text to the allowed length.
func cut(word string, s apiextensionsv1.JSONSchemaProps) string {
	if s.MinLength != nil && int64(len(word)) < *s.MinLength {
		word += strings.Repeat("x", int(*s.MinLength)-len(word))
	}
	if s.MaxLength != nil && int64(len(word)) > *s.MaxLength {
		word = word[:*s.MaxLength]
	}
	return word
}
