package kubernetes_test

import (
	"testing"

	"headgate.dev/headgate/render/check"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestUpdate(t *testing.T) {
	const (
		secret  = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
		binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\n"
	)
	cases := map[string]struct {
		reason, was, is string
		want            []string // fields
	}{
		"RoleRef":     {"A binding keeps its role.", binding + "roleRef: {kind: Role, name: a}\n", binding + "roleRef: {kind: Role, name: b}\n", []string{"roleRef"}},
		"Default":     {"The group of a role has a default.", binding + "roleRef: {kind: Role, name: a}\n", binding + "roleRef: {kind: Role, name: a, apiGroup: rbac.authorization.k8s.io}\n", nil},
		"Type":        {"A Secret without a type is opaque.", secret, secret + "type: kubernetes.io/tls\n", []string{"type"}},
		"Opaque":      {"Opaque is the default.", secret, secret + "type: Opaque\n", nil},
		"Immutable":   {"An immutable object keeps its data.", secret + "immutable: true\nstringData: {a: b}\n", secret + "stringData: {a: c}\n", []string{"stringData", "immutable"}},
		"BecomesSo":   {"An object may become immutable with new data.", secret + "stringData: {a: b}\n", secret + "immutable: true\nstringData: {a: c}\n", nil},
		"Replacement": {"Flux and Argo CD delete such an object first.", secret, "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {kustomize.toolkit.fluxcd.io/force: enabled}}\ntype: a\n", nil},
		"OneSide":     {"The selector may have had this value.", "apiVersion: v1\nkind: Service\nspec: {}\n", "apiVersion: v1\nkind: Service\nspec: {clusterIP: 10.0.0.1}\n", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var was, is unstructured.Unstructured
			for text, into := range map[string]*unstructured.Unstructured{tc.was: &was, tc.is: &is} {
				if err := yaml.Unmarshal([]byte(text), &into.Object); err != nil {
					t.Fatal(err)
				}
			}
			kind, _ := source(t, "").Kind(is.GroupVersionKind().GroupKind())
			var got []string
			for _, p := range kind.(check.Updater).Update(&is, &was) {
				got = append(got, p.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nUpdate(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
