package crd_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/render/crd"

	"github.com/crossplane/crossplane/apis/v2/apiextensions/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func TestOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		mrd    string
		want   string
	}{
		"Least": {
			reason: "An MRD with only the required fields becomes a CRD with the fields that every CRD has.",
			mrd: `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  versions: [{name: v1}]`,
			want: `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  versions: [{name: v1, served: false, storage: false}]`,
		},
		"NoScope": {
			reason: "The API server sets the default scope of an MRD.",
			mrd: `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  versions: [{name: v1, served: true, storage: true}]`,
			want: `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true}]`,
		},
		"MetadataIsNotCopied": {
			reason: "Crossplane copies neither labels nor annotations nor the status.",
			mrd: `
metadata:
  name: buckets.example.org
  labels: {a: b}
  annotations: {controller-gen.kubebuilder.io/version: v0.19.0}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true}]
  state: Active
  connectionDetails: [{name: password, description: the password}]
status: {conditions: []}`,
			want: `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true}]`,
		},
		"VersionsInPlainOrder": {
			reason: "Crossplane sorts versions as plain strings, unlike Kubernetes.",
			mrd: `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  versions:
  - {name: v2, served: true, storage: true}
  - {name: v10, served: true, storage: false}
  - {name: v1beta1, served: true, storage: false}
  - {name: v1, served: true, storage: false}`,
			want: `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: false}
  - {name: v10, served: true, storage: false}
  - {name: v1beta1, served: true, storage: false}
  - {name: v2, served: true, storage: true}`,
		},
		"Everything": {
			reason: "Every set field is kept, and large integers keep all digits.",
			mrd: `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets, singular: bucket, listKind: BucketList, shortNames: [b], categories: [managed]}
  scope: Namespaced
  preserveUnknownFields: true
  conversion: {strategy: None}
  versions:
  - name: v1
    served: true
    storage: true
    deprecated: true
    deprecationWarning: ""
    schema: {openAPIV3Schema: {type: object, properties: {n: {type: integer, maximum: 9007199254740993}}}}
    subresources: {status: {}, scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}
    additionalPrinterColumns: [{name: READY, type: string, jsonPath: .status.ready, priority: 1}]
    selectableFields: [{jsonPath: .spec.n}]`,
			want: `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets, singular: bucket, listKind: BucketList, shortNames: [b], categories: [managed]}
  scope: Namespaced
  preserveUnknownFields: true
  conversion: {strategy: None}
  versions:
  - name: v1
    served: true
    storage: true
    deprecated: true
    deprecationWarning: ""
    schema: {openAPIV3Schema: {type: object, properties: {n: {type: integer, maximum: 9007199254740993}}}}
    subresources: {status: {}, scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}
    additionalPrinterColumns: [{name: READY, type: string, jsonPath: .status.ready, priority: 1}]
    selectableFields: [{jsonPath: .spec.n}]`,
		},
		"NothingToSay": {
			reason: "Empty and false fields are dropped, and unknown fields are never decoded.",
			mrd: `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets, singular: "", listKind: "", shortNames: [], categories: null, nickname: b}
  scope: Cluster
  preserveUnknownFields: false
  conversion: null
  provider: aws
  versions:
  - {name: v1, served: true, storage: true, deprecated: false, schema: null, subresources: {}, additionalPrinterColumns: [{name: a, type: string, jsonPath: .a, priority: 0, format: "", description: ""}], selectableFields: [], note: x}`,
			want: `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, additionalPrinterColumns: [{name: a, type: string, jsonPath: .a}]}]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mrd := decode(t, tc.mrd)
			before := mrd.DeepCopy()
			got, err := crd.Of(mrd)
			if err != nil {
				t.Fatalf("%s\nOf(...): %v", tc.reason, err)
			}
			want := decode(t, tc.want)
			want.SetAPIVersion("apiextensions.k8s.io/v1")
			want.SetKind("CustomResourceDefinition")
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("%s\nOf(...) (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, mrd); diff != "" {
				t.Errorf("Of changed the MRD (-before +after):\n%s", diff)
			}
		})
	}
}

func TestOfMalformed(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(spec map[string]any)
		want   []string // fields
	}{
		"VersionsIsAnObject": {
			reason: "Crossplane's design document shows versions as a map, but the type never had that.",
			change: func(spec map[string]any) { spec["versions"] = map[string]any{"v1": map[string]any{}} },
			want:   []string{"spec.versions"},
		},
		"NoVersions": {
			reason: "A CRD needs a version.",
			change: func(spec map[string]any) { delete(spec, "versions") },
			want:   []string{"spec.versions"},
		},
		"VersionWithoutName": {
			reason: "Versions are sorted and served by name.",
			change: func(spec map[string]any) { spec["versions"] = []any{map[string]any{"served": true}} },
			want:   []string{"spec.versions[0].name"},
		},
		"VersionIsNull": {
			reason: "A stray dash in YAML is a version without a value.",
			change: func(spec map[string]any) { spec["versions"] = []any{nil} },
			want:   []string{"spec.versions[0]"},
		},
		"EmptySchema": {
			reason: "Crossplane cannot parse an empty schema either.",
			change: func(spec map[string]any) {
				spec["versions"] = []any{map[string]any{"name": "v1", "schema": map[string]any{}}}
			},
			want: []string{"spec.versions[0].schema.openAPIV3Schema"},
		},
		"SeveralAtOnce": {
			reason: "A user wants to see all mistakes together.",
			change: func(spec map[string]any) {
				delete(spec, "group")
				spec["scope"] = "Global"
				spec["names"] = map[string]any{"plural": "buckets"}
			},
			want: []string{"spec.group", "spec.names.kind", "spec.scope"},
		},
		"WrongTypes": {
			reason: "Decoding into Go types refuses values of the wrong type.",
			change: func(spec map[string]any) {
				spec["group"] = int64(1)
				spec["names"] = []any{}
				spec["preserveUnknownFields"] = "yes"
			},
			want: []string{"spec.group", "spec.names", "spec.preserveUnknownFields"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mrd := decode(t, `
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true}]`)
			tc.change(mrd.Object["spec"].(map[string]any))
			_, err := crd.Of(mrd)
			if diff := cmp.Diff(tc.want, fieldsOf(err)); diff != "" {
				t.Errorf("%s\nfields of %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func fieldsOf(err error) []string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range joined.Unwrap() {
			all = append(all, fieldsOf(e)...)
		}
		return all
	}
	if f, ok := errors.AsType[crd.FieldError](err); ok {
		return []string{f.Field()}
	}
	return nil
}

func TestDefinition(t *testing.T) {
	const plain = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: buckets.example.org
  creationTimestamp: null
  labels: {a: b}
  annotations: {controller-gen.kubebuilder.io/version: v0.19.0}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  versions: [{name: v2, served: true, storage: true}, {name: v1, served: true, storage: false}]
  state: Inactive
  connectionDetails: []
status:
  storedVersions: [v1]`
	const want = `
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata:
  name: buckets.example.org
  labels: {a: b}
  annotations: {controller-gen.kubebuilder.io/version: v0.19.0}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  scope: Cluster
  versions: [{name: v2, served: true, storage: true}, {name: v1, served: true, storage: false}]`

	t.Run("SafeStart", func(t *testing.T) {
		in := decode(t, plain)
		before := in.DeepCopy()
		if diff := cmp.Diff(decode(t, want).Object, crd.Definition(in, true).Object); diff != "" {
			t.Errorf("all metadata, the versions as they were, no state (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, in); diff != "" {
			t.Errorf("Definition changed the CRD (-before +after):\n%s", diff)
		}
	})
	t.Run("ConversionWebhook", func(t *testing.T) {
		in := decode(t, plain)
		service := map[string]any{"path": "/convert"}
		conversion := map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"clientConfig": map[string]any{"service": service}, "conversionReviewVersions": []any{"v1"},
		}}
		in.Object["spec"].(map[string]any)["conversion"] = conversion
		mrd := crd.Definition(in, true)
		got, _, _ := unstructured.NestedMap(mrd.Object, "spec", "conversion", "webhook", "clientConfig", "service")
		if diff := cmp.Diff(map[string]any{"path": "/convert", "name": "", "namespace": ""}, got); diff != "" {
			t.Errorf("the API server refuses an MRD, even an inactive one, whose service has no name and namespace (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]any{"path": "/convert"}, service); diff != "" {
			t.Errorf("Definition changed the CRD (-before +after):\n%s", diff)
		}
		assertTyped(t, "made up", mrd)
	})
	t.Run("NotSafeStart", func(t *testing.T) {
		got := crd.Definition(decode(t, plain), false)
		if state, _, _ := unstructured.NestedString(got.Object, "spec", "state"); state != "Active" {
			t.Errorf("state: want Active, got %q", state)
		}
	})
}

// TestCorpus compares our conversion with Crossplane's own type, and one direction with the other, for the definitions that
// providers really contain.
func TestCorpus(t *testing.T) {
	archives := map[string]int{ // every n-th CRD
		"provider-nop":               1,
		"provider-helm":              1,
		"provider-helm-older":        1,
		"provider-kubernetes":        1,
		"provider-kubernetes-v1.0.0": 1,
		"crossplane-core":            1,
		"provider-upjet-aws":         100,
		"provider-made":              100,
	}
	for archive, every := range archives {
		t.Run(archive, func(t *testing.T) {
			files := fixtures.Corpus(t, archive)
			names, err := fs.Glob(files, "crds/*.yaml")
			if err != nil || len(names) == 0 {
				t.Fatalf("no CRDs: %v", err)
			}
			for i, name := range names {
				if i%every != 0 {
					continue
				}
				in := decode(t, string(files[name].Data))
				mrd := crd.Definition(in, i%2 == 0)
				assertTyped(t, path.Base(name), mrd)

				got, err := crd.Of(mrd)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if diff := cmp.Diff(plainCRD(in).Object, got.Object); diff != "" {
					t.Errorf("%s: there and back (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// assertTyped asserts that Crossplane's type has exactly the fields of an MRD.
func assertTyped(t *testing.T, name string, mrd *unstructured.Unstructured) {
	t.Helper()
	typed, err := retyped(mrd)
	if err != nil {
		t.Errorf("%s: Crossplane cannot decode the MRD: %v", name, err)
		return
	}
	if diff := cmp.Diff(typed, withoutEmpty(mrd.Object)); diff != "" {
		t.Errorf("%s: the MRD as Crossplane decodes it (-want +got):\n%s", name, diff)
	}
}

// retyped decodes an MRD into Crossplane's type and encodes it again.
func retyped(mrd *unstructured.Unstructured) (any, error) {
	var typed v1alpha1.ManagedResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(mrd.Object, &typed); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	var v map[string]any
	if err := utiljson.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	delete(v, "status")
	return withoutEmpty(v), nil
}

// withoutEmpty returns a value without its null and "" fields. A Go type without omitempty writes both for
// absent fields. The API server requires the fields of a service, so they stay.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if value != nil && (value != "" || isService(v)) {
				out[key] = withoutEmpty(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = withoutEmpty(value)
		}
		return out
	}
	return v
}

// isService reports whether a mapping in the corpus is the service of a webhook.
func isService(m map[string]any) bool { return m["path"] == "/convert" }

// plainCRD returns the expected CRD after a CRD was converted to an MRD and back.
func plainCRD(in *unstructured.Unstructured) *unstructured.Unstructured {
	out := in.DeepCopy()
	delete(out.Object, "status")
	out.Object["metadata"] = map[string]any{"name": in.GetName()}
	if service, found, _ := unstructured.NestedMap(in.Object, "spec", "conversion", "webhook", "clientConfig", "service"); found {
		for _, key := range []string{"name", "namespace"} {
			if service[key] == nil {
				service[key] = ""
			}
		}
		if err := unstructured.SetNestedMap(out.Object, service, "spec", "conversion", "webhook", "clientConfig", "service"); err != nil {
			panic(err) // the path was read above
		}
	}
	versions := out.Object["spec"].(map[string]any)["versions"].([]any)
	for _, v := range versions {
		version := v.(map[string]any)
		if subresources, _ := version["subresources"].(map[string]any); len(subresources) == 0 {
			delete(version, "subresources") // Crossplane does not write it either
		}
	}
	slices.SortFunc(versions, func(a, b any) int {
		if a.(map[string]any)["name"].(string) < b.(map[string]any)["name"].(string) {
			return -1
		}
		return 1
	})
	return out
}

// FuzzRoundTrip converts any JSON object as a CRD and checks three things. Neither direction changes its input or panics. If Of
// succeeds, another round trip through an MRD changes nothing. Crossplane's own type decodes the MRD without loss.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a.b"},"spec":{"group":"b","names":{"kind":"A","plural":"a"},"scope":"Cluster","versions":[{"name":"v2","served":true,"storage":true},{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}}}]}}`), true)
	f.Add([]byte(`{"metadata":{"name":"a.b"},"spec":{"group":"b","names":{"kind":"A","plural":"a","shortNames":["x"]},"scope":"Namespaced","versions":[{"name":"v1","additionalPrinterColumns":[{"name":"n","type":"string","jsonPath":".x","priority":1}],"subresources":{"status":{},"scale":{"specReplicasPath":".a"}}}],"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"path":"/convert","port":9443},"caBundle":"YQ=="},"conversionReviewVersions":["v1"]}}}}`), false)
	f.Add([]byte(`{"spec":{"versions":{"name":"v1"}}}`), false)
	f.Add([]byte(`{"metadata":{"name":"a.b"},"spec":{"group":"b","names":{"kind":"A","plural":"a"},"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":[{"name":"n","type":"string","jsonPath":".x","priority":0,"format":"","description":""}]}],"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a","caBundle":""},"conversionReviewVersions":["v1"]}}}}`), true)
	f.Fuzz(func(t *testing.T, raw []byte, safeStart bool) {
		var object map[string]any
		if utiljson.Unmarshal(raw, &object) != nil || object == nil {
			t.Skip()
		}
		in := &unstructured.Unstructured{Object: object}
		before := in.DeepCopy()

		mrd := crd.Definition(in, safeStart)
		made, err := crd.Of(mrd)
		if diff := cmp.Diff(before, in); diff != "" {
			t.Fatalf("the CRD was changed (-before +after):\n%s", diff)
		}
		if err != nil {
			if len(fieldsOf(err)) == 0 {
				t.Fatalf("an error that names no field: %v", err)
			}
			return
		}
		again, err := crd.Of(crd.Definition(made, safeStart))
		if err != nil {
			t.Fatalf("a CRD that was made is refused: %v", err)
		}
		if diff := cmp.Diff(made, again); diff != "" {
			t.Fatalf("there and back once more (-want +got):\n%s", diff)
		}

		// Only the spec matters here: the metadata of a package is decoded much earlier.
		bare := &unstructured.Unstructured{Object: map[string]any{"spec": mrd.Object["spec"]}}
		typed, err := retyped(bare)
		if err != nil {
			t.Fatalf("Crossplane cannot decode the MRD: %v", err)
		}
		spec := typed.(map[string]any)["spec"].(map[string]any)
		delete(spec, "state")
		got := withoutEmpty(made.Object["spec"]).(map[string]any)
		viaType, err := crd.Of(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": in.GetName()}, "spec": spec,
		}})
		if err != nil {
			t.Fatalf("what Crossplane decoded is refused: %v", err)
		}
		if diff := cmp.Diff(withoutEmpty(viaType.Object["spec"]), any(got)); diff != "" {
			t.Fatalf("the CRD by way of Crossplane's type (-want +got):\n%s", diff)
		}
	})
}

func decode(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

func TestCheckApplied(t *testing.T) {
	mrd := func(version, details string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("spec: {versions: [{name: v1, "+version+"}], connectionDetails: ["+details+"]}"), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	cases := map[string]struct {
		reason, version, details string
		want                     string // the wrong field
	}{
		"Whole":        {"A complete definition is accepted.", "served: true, storage: false", "{name: a, description: b}", ""},
		"ServedUnsaid": {"Every version must specify served.", "storage: true", "", "spec.versions[0].served"},
		"Undescribed":  {"Every connection detail must have a description.", "served: true, storage: true", "{name: a}", "spec.connectionDetails[0].description"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := crd.CheckApplied(mrd(tc.version, tc.details)); err != nil {
				field, _ := errors.AsType[crd.FieldError](err)
				got = field.Field()
			}
			if got != tc.want {
				t.Errorf("%s\n%q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
