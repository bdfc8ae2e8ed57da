package crd_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/render/crd"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const schemaOfToy = `
description: A Toy.
type: object
properties:
  spec:
    type: object
    required: [forProvider]
    x-kubernetes-validations:
    - message: spec.forProvider.size is a required parameter
      rule: '!(''*'' in self.managementPolicies || ''Create'' in self.managementPolicies
        || ''Update'' in self.managementPolicies) || has(self.forProvider.size)
        || (has(self.initProvider) && has(self.initProvider.size))'
    - message: spec.forProvider.namespace is a required parameter
      rule: '!(''Create'' in self.managementPolicies) || has(self.forProvider.__namespace__)'
    properties:
      forProvider:
        type: object
        required: [region]
        properties:
          region: {type: string, x-kubernetes-validations: [{rule: "self  == oldSelf", message: it cannot be moved}]}
          size: {type: integer, format: int64, minimum: 1, maximum: 1000000, exclusiveMaximum: true, default: 3, description: "How\n  large."}
          namespace: {type: string}
          port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
          ratio: {type: number, multipleOf: 0.5, nullable: true}
          kinds: {type: array, minItems: 1, x-kubernetes-list-type: set, items: {type: string, maxLength: 63, pattern: "^[a-z]+$", enum: [a, b]}}
          tags: {type: object, additionalProperties: {type: string}}
          matrix: {type: array, items: {type: array, items: {type: object, additionalProperties: {type: array, items: {type: integer}}}}}
          rules:
            type: array
            description: Rules.
            x-kubernetes-list-map-keys: [name]
            items:
              type: object
              required: [name]
              x-kubernetes-validations: [{rule: "has(self.a)\n|| has(self.name)"}]
              properties: {name: {type: string}, a: {type: object, properties: {b: {type: boolean}}}}
          any: {x-kubernetes-preserve-unknown-fields: true}
          whole: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
          free: {type: object, additionalProperties: true}
`

func TestFieldAt(t *testing.T) {
	schema := decode(t, schemaOfToy).Object
	forProvider := func(name string) string { return "spec.forProvider." + name }
	cases := map[string]struct {
		reason string
		path   string
		levels int
		want   crd.Field
	}{
		"Kind": {
			"An empty path returns the kind itself, with the number of fields below.", "", 0,
			crd.Field{Type: "object", Description: "A Toy.", Below: 1},
		},
		"Levels": {
			"The number of levels is limited.", "spec", 1,
			crd.Field{Name: "spec", Type: "object", Fields: []crd.Field{{Name: "forProvider", Type: "object", Required: true, Below: 12}}},
		},
		"Immutable": {"A field that the API server does not allow to change is immutable, and its rule is not listed.", forProvider("region"), 0, crd.Field{Name: "region", Type: "string", Required: true, Immutable: true}},
		"Everything": {
			"A rule of the spec may require a field for creation.", forProvider("size"), 0,
			crd.Field{
				Name: "size", Type: "integer", Format: "int64", Description: "How large.", RequiredToCreate: true,
				Default: int64(3), Limits: []string{"at least 1", "less than 1000000"},
			},
		},
		"EscapedName": {"A field whose name is a reserved word in CEL is escaped in rules.", forProvider("namespace"), 0, crd.Field{Name: "namespace", Type: "string", RequiredToCreate: true}},
		"IntOrString": {"A field may be an integer or a string.", forProvider("port"), 0, crd.Field{Name: "port", Type: "integer or string"}},
		"Number":      {"Numbers are written without exponents.", forProvider("ratio"), 0, crd.Field{Name: "ratio", Type: "number", Limits: []string{"a multiple of 0.5", "null is a value"}}},
		"List": {
			"Limits of a list and of its items are listed.", forProvider("kinds"), 0,
			crd.Field{
				Name: "kinds", Type: "[]string", Enum: []any{"a", "b"},
				Limits: []string{"at least 1 item", "no duplicates", "each at most 63 characters", "each matching ^[a-z]+$"},
			},
		},
		"Map":    {"The type of a map contains the type of its values.", forProvider("tags"), 0, crd.Field{Name: "tags", Type: "map[string]string"}},
		"Nested": {"Types may be nested to any depth.", forProvider("matrix"), 0, crd.Field{Name: "matrix", Type: "[][]map[string][]integer"}},
		"Objects": {
			"A path names the fields of list items without an index.", forProvider("rules"), -1,
			crd.Field{
				Name: "rules", Type: "[]object", Description: "Rules.", Limits: []string{"no duplicates name"}, Rules: []string{"has(self.a) || has(self.name)"},
				Fields: []crd.Field{
					{Name: "a", Type: "object", Fields: []crd.Field{{Name: "b", Type: "boolean"}}},
					{Name: "name", Type: "string", Required: true},
				},
			},
		},
		"InAList": {"A path may continue below list items.", forProvider("rules.a.b"), 0, crd.Field{Name: "b", Type: "boolean"}},
		"Any":     {"A field may have any type.", forProvider("any"), 0, crd.Field{Name: "any", Type: "any", Limits: []string{"any fields"}}},
		"Whole":   {"A field may contain a whole Kubernetes object.", forProvider("whole"), 0, crd.Field{Name: "whole", Type: "object", Limits: []string{"a whole Kubernetes object", "any fields"}}},
		"Free":    {"The values of a map may have any type.", forProvider("free"), 0, crd.Field{Name: "free", Type: "map[string]any"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var path []string
			if tc.path != "" {
				path = strings.Split(tc.path, ".")
			}
			got, err := crd.FieldAt(schema, path, tc.levels)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nFieldAt(%q) (-want +got):\n%s", tc.reason, tc.path, diff)
			}
		})
	}

	_, err := crd.FieldAt(schema, []string{"spec", "forProvider", "regoin"}, 0)
	no, ok := errors.AsType[crd.NoFieldError](err)
	if !ok || no.At != "spec.forProvider" || no.Name != "regoin" || len(no.Have) != 12 || !slices.IsSorted(no.Have) {
		t.Errorf("what there is instead is told: %#v", err)
	}
	_, err = crd.FieldAt(nil, []string{"a"}, 0)
	if no, ok := errors.AsType[crd.NoFieldError](err); !ok || len(no.Have) > 0 {
		t.Errorf("a version without a schema has no fields: %v", err)
	}
}

// FuzzFieldAt uses any JSON object as a schema and checks that every listed field is found at its own path, unchanged.
func FuzzFieldAt(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"items":{"properties":{"b":{"type":"string","default":1}}}},"c":{"additionalProperties":{"type":"object"}}},"required":["a"]}`))
	f.Add([]byte(`{"x-kubernetes-validations":[{"rule":"!('Create' in self.managementPolicies) || has(self.forProvider.a)"}],"properties":{"forProvider":{"properties":{"a":{}}}}}`))
	f.Add([]byte(`{"properties":{"a":null,"b":{"properties":7},"c":{"items":{"items":null}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var schema map[string]any
		if utiljson.Unmarshal(raw, &schema) != nil {
			t.Skip()
		}
		whole, err := crd.FieldAt(schema, nil, -1)
		if err != nil {
			t.Fatal(err)
		}
		var visit func(field crd.Field, path []string)
		visit = func(field crd.Field, path []string) {
			got, err := crd.FieldAt(schema, path, -1)
			if err != nil {
				t.Fatalf("%q: %v", path, err)
			}
			if diff := cmp.Diff(field, got); diff != "" {
				t.Fatalf("%q (-in the whole +at its path):\n%s", path, diff)
			}
			for _, below := range field.Fields {
				visit(below, append(slices.Clip(path), below.Name))
			}
		}
		visit(whole, nil)
	})
}

// Every field of a real provider has documentation.
func TestFieldsOfAWS(t *testing.T) { fixtures.Large(t, fieldsOfAWS) }

func fieldsOfAWS(t *testing.T, files fstest.MapFS) {
	t.Helper()
	schema := func(name, version string) map[string]any {
		t.Helper()
		for _, v := range crd.VersionsOf(decode(t, string(files["crds/"+name].Data))) {
			if v.Name == version || version == "" {
				return v.Schema
			}
		}
		t.Fatalf("%s has no version %q", name, version)
		return nil
	}
	want := crd.Field{
		Name: "region", Type: "string", Required: true,
		Description: "Region where this resource will be managed. Defaults to the Region set in the provider configuration. Region is the region you'd like your resource to be created in.",
	}
	got, err := crd.FieldAt(schema("s3.aws.m.upbound.io_buckets.yaml", ""), []string{"spec", "forProvider", "region"}, -1)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}

	toCreate, fields := 0, 0
	var count func(f crd.Field)
	count = func(f crd.Field) {
		fields++
		if f.RequiredToCreate {
			toCreate++
		}
		if f.Type == "any" || strings.HasSuffix(f.Type, "[]") || strings.HasSuffix(f.Type, "]") || len(f.Rules) > 0 && strings.Contains(strings.Join(f.Rules, ""), "is a required") {
			t.Errorf("%+v", f)
		}
		for _, below := range f.Fields {
			count(below)
		}
	}
	for _, name := range []string{"rds.aws.m.upbound.io_instances.yaml", "ec2.aws.m.upbound.io_subnets.yaml", "firehose.aws.upbound.io_deliverystreams.yaml", "s3.aws.upbound.io_bucketlifecycleconfigurations.yaml"} {
		for _, v := range crd.VersionsOf(decode(t, string(files["crds/"+name].Data))) {
			f, err := crd.FieldAt(v.Schema, nil, -1)
			if err != nil {
				t.Fatal(err)
			}
			count(f)
		}
	}
	t.Logf("%d fields, %d required to create", fields, toCreate)
	if toCreate == 0 || fields < 2000 {
		t.Errorf("%d fields, %d required to create", fields, toCreate)
	}
}

func TestVersionsOf(t *testing.T) {
	got := crd.VersionsOf(decode(t, `
spec:
  versions:
  - {name: v1alpha1, served: true, storage: false, deprecated: true, deprecationWarning: use v1}
  - {name: v2, served: false, storage: false}
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta2, served: true, storage: false}
`))
	want := []crd.Version{
		{Name: "v1beta2", Served: true},
		{Name: "v1beta1", Served: true, Storage: true, Schema: map[string]any{"type": "object"}},
		{Name: "v1alpha1", Served: true, Deprecated: true, Warning: "use v1"},
		{Name: "v2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the one that kubectl takes comes first (-want +got):\n%s", diff)
	}
}
