package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestResourceOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		crd    string
		want   map[string]any
	}{
		"Namespaced": {
			reason: "Required fields get values that the schema accepts, and the sample has no other fields.",
			crd:    "network.tidewater.m.example.org_subnets.yaml",
			want: map[string]any{
				"apiVersion": "network.tidewater.m.example.org/v1beta1",
				"kind":       "Subnet",
				"metadata":   map[string]any{"name": "first", "namespace": "shop"},
				"spec": map[string]any{
					"managementPolicies": []any{"Observe"},
					"forProvider": map[string]any{
						"cidr":       "10.0.0.0/16",
						"networkRef": map[string]any{"name": "sample"},
						"region":     "sample",
					},
				},
			},
		},
		"Lists": {
			reason: "A list that must not be empty gets an item.",
			crd:    "storage.tidewater.m.example.org_bucketpolicies.yaml",
			want: map[string]any{
				"apiVersion": "storage.tidewater.m.example.org/v1beta1",
				"kind":       "BucketPolicy",
				"metadata":   map[string]any{"name": "first", "namespace": "shop"},
				"spec": map[string]any{
					"managementPolicies": []any{"Observe"},
					"forProvider": map[string]any{
						"bucketRef":  map[string]any{"name": "sample"},
						"region":     "sample",
						"statements": []any{map[string]any{"actions": []any{"sample"}, "effect": "Allow"}},
					},
				},
			},
		},
		"ClusterScoped": {
			reason: "The sample uses the storage version and has no namespace.",
			crd:    "storage.tidewater.example.org_buckets.yaml",
			want: map[string]any{
				"apiVersion": "storage.tidewater.example.org/v1beta1",
				"kind":       "Bucket",
				"metadata":   map[string]any{"name": "first"},
				"spec": map[string]any{
					"managementPolicies": []any{"Observe"},
					"forProvider":        map[string]any{"region": "sample"},
				},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile("../repository/provider-tidewater/crds/" + tc.crd)
			if err != nil {
				t.Fatal(err)
			}
			var crd apiextensionsv1.CustomResourceDefinition
			if err := yaml.UnmarshalStrict(data, &crd); err != nil {
				t.Fatal(err)
			}
			got, err := resourceOf(crd)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nresourceOf(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
