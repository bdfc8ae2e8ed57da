package crd

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// A shape is the type of a value for a typed decode. Crossplane decodes into Go types, which drops unknown fields and rejects
// values of another type. Shapes do both without a decode, and keep 64-bit integers.
type shape struct {
	is     kind
	fields map[string]shape // of an object
	items  *shape           // of a list
}

type kind string

const (
	object  kind = "an object"
	list    kind = "a list"
	text    kind = "a string"
	flag    kind = "true or false"
	integer kind = "a 32-bit integer"
	encoded kind = "base64"
	schema  kind = "an OpenAPI v3 schema" // shared, and never inspected
	free    kind = "any value"            // copied
)

func fields(of map[string]shape) shape { return shape{is: object, fields: of} }
func listOf(items shape) shape         { return shape{is: list, items: &items} }

var (
	aText    = shape{is: text}
	aFlag    = shape{is: flag}
	aInteger = shape{is: integer}
	anything = shape{is: free}
)

// definition is the writable part of an MRD, without its status.
var definition = fields(map[string]shape{
	"metadata": fields(map[string]shape{
		"name":                       aText,
		"generateName":               aText,
		"namespace":                  aText,
		"labels":                     anything,
		"annotations":                anything,
		"ownerReferences":            anything,
		"finalizers":                 anything,
		"managedFields":              anything,
		"uid":                        aText,
		"resourceVersion":            aText,
		"selfLink":                   aText,
		"generation":                 anything,
		"creationTimestamp":          aText,
		"deletionTimestamp":          aText,
		"deletionGracePeriodSeconds": anything,
	}),
	"spec": fields(map[string]shape{
		"group": aText,
		"names": fields(map[string]shape{
			"plural":     aText,
			"singular":   aText,
			"shortNames": listOf(aText),
			"kind":       aText,
			"listKind":   aText,
			"categories": listOf(aText),
		}),
		"scope":    aText,
		"versions": listOf(version),
		"conversion": fields(map[string]shape{
			"strategy": aText,
			"webhook": fields(map[string]shape{
				"clientConfig": fields(map[string]shape{
					"url": aText,
					"service": fields(map[string]shape{
						"namespace": aText,
						"name":      aText,
						"path":      aText,
						"port":      aInteger,
					}),
					"caBundle": {is: encoded},
				}),
				"conversionReviewVersions": listOf(aText),
			}),
		}),
		"preserveUnknownFields": aFlag,
		"connectionDetails": listOf(fields(map[string]shape{
			"name":        aText,
			"description": aText,
		})),
		"state": aText,
	}),
})

var version = fields(map[string]shape{
	"name":               aText,
	"served":             aFlag,
	"storage":            aFlag,
	"deprecated":         aFlag,
	"deprecationWarning": aText,
	"schema": fields(map[string]shape{
		"openAPIV3Schema": {is: schema},
	}),
	"subresources": fields(map[string]shape{
		"status": fields(nil),
		"scale": fields(map[string]shape{
			"specReplicasPath":   aText,
			"statusReplicasPath": aText,
			"labelSelectorPath":  aText,
		}),
	}),
	"additionalPrinterColumns": listOf(fields(map[string]shape{
		"name":        aText,
		"type":        aText,
		"format":      aText,
		"description": aText,
		"priority":    aInteger,
		"jsonPath":    aText,
	})),
	"selectableFields": listOf(fields(map[string]shape{
		"jsonPath": aText,
	})),
})

// read copies the part of v that has this shape: known fields that are not null. It copies values of another type unchanged.
func (s shape) read(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if s.is == schema {
			return v
		}
		if s.is != object {
			return runtime.DeepCopyJSONValue(v)
		}
		out := make(map[string]any, len(v))
		for key, field := range s.fields {
			if value := v[key]; value != nil {
				out[key] = field.read(value)
			}
		}
		return out
	case []any:
		if s.is != list {
			return runtime.DeepCopyJSONValue(v)
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.items.read(item)
		}
		return out
	}
	return v
}

// check reports the values that a typed decode would reject, in order of path. A null field counts as absent.
func (s shape) check(v any, at []any, found *[]error) {
	switch v := v.(type) {
	case map[string]any:
		if s.is != object {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(s.fields)) {
			if value := v[key]; value != nil {
				s.fields[key].check(value, join(at, key), found)
			}
		}
		return
	case []any:
		if s.is != list {
			break
		}
		for i, item := range v {
			s.items.check(item, join(at, i), found)
		}
		return
	}
	if !s.fits(v) {
		*found = append(*found, FieldError{Path: at, Problem: fmt.Sprintf("must be %s", s.is)})
	}
}

// fits reports whether v is a scalar, or a schema, of this shape.
func (s shape) fits(v any) bool {
	_, isMap := v.(map[string]any)
	switch s.is {
	case object, list:
		return false
	case free:
		return true
	case schema:
		return isMap
	case text:
		_, ok := v.(string)
		return ok
	case flag:
		_, ok := v.(bool)
		return ok
	case encoded:
		s, ok := v.(string)
		_, err := base64.StdEncoding.DecodeString(s)
		return ok && err == nil
	case integer:
		switch n := v.(type) {
		case int64:
			return math.MinInt32 <= n && n <= math.MaxInt32
		case float64:
			return n == math.Trunc(n) && math.MinInt32 <= n && n <= math.MaxInt32
		}
	}
	return false
}

// join returns a new path, because at may be shared.
func join(at []any, step any) []any {
	return append(slices.Clip(slices.Clone(at)), step)
}
