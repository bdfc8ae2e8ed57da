package manifest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestEncodeStringData(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
	cases := map[string]struct{ reason, in, want string }{
		"Moved":     {"The stored Secret has only data.", secret + "stringData: {a: x}", secret + "data: {a: eA==}"},
		"Both":      {"stringData takes precedence, as in the API server.", secret + "data: {a: eQ==, b: eQ==}\nstringData: {a: x}", secret + "data: {a: eA==, b: eQ==}"},
		"Empty":     {"An empty mapping sets nothing.", secret + "stringData: {}", secret},
		"NoValue":   {"data without a value is a mapping, too.", secret + "data:\nstringData: {a: ''}", secret + "data: {a: ''}"},
		"Number":    {"The API server refuses a number, and must still see it.", secret + "stringData: {a: 1, b: x}", secret + "stringData: {a: 1, b: x}"},
		"Null":      {"The API server decides what a key without a value means.", secret + "stringData: {a: }", secret + "stringData: {a: }"},
		"WrongData": {"The API server refuses data that is not a mapping.", secret + "data: x\nstringData: {a: x}", secret + "data: x\nstringData: {a: x}"},
		"Unknown":   {"A misspelt field stays, so that the API server refuses it.", secret + "stringdata: {a: x}\nstringData: {}", secret + "stringdata: {a: x}"},
		"ConfigMap": {"Only a Secret has such a field.", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nstringData: {a: x}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nstringData: {a: x}"},
		"Group":     {"A Secret of another group is another kind.", "apiVersion: example.org/v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: x}", "apiVersion: example.org/v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: x}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var in, want map[string]any
			if err := errors.Join(yaml.Unmarshal([]byte(tc.in), &in), yaml.Unmarshal([]byte(tc.want), &want)); err != nil {
				t.Fatal(err)
			}
			EncodeStringData(&unstructured.Unstructured{Object: in})
			if diff := cmp.Diff(want, in); diff != "" {
				t.Errorf("%s\nEncodeStringData(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
