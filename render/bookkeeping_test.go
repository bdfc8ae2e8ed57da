package render_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"

	"github.com/google/go-cmp/cmp"
)

// A commit with an inventory could make another sync forget what it applied.
func TestNoCommitHoldsAnInventory(t *testing.T) {
	const named = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: headgate-prod, namespace: headgate-system}\n"
	one := func(text string) fstest.MapFS { return fstest.MapFS{"all.yaml": file(text)} }
	cases := map[string]struct {
		reason string
		files  fstest.MapFS
		at     []string
	}{
		"Name":       {"This is what was adopted, and pruned.", one(named), []string{"all.yaml:1"}},
		"Sibling":    {"A sibling holds the values.", one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values-0123.headgate-prod, namespace: headgate-system}\n"), []string{"all.yaml:1"}},
		"Label":      {"A Sync has its inventory in its own namespace. So has cli-utils.", one("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: any\n  namespace: team\n  labels: {cli-utils.sigs.k8s.io/inventory-id: \"\"}\n"), []string{"all.yaml:1"}},
		"PartLabel":  {"Sweeping deletes by this label.", one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: any, labels: {headgate.dev/inventory-values-of: team.prod}}\n"), []string{"all.yaml:1"}},
		"Annotation": {"The label was left out.", one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: any, annotations: {headgate.dev/inventory: '{\"format\":1}'}}\n"), []string{"all.yaml:1"}},
		"Key":        {"Digests of Secrets depend on it.", one("apiVersion: v1\nkind: Secret\nmetadata: {name: headgate-prod, namespace: team}\nstringData: {digest-key: x}\n"), []string{"all.yaml:1"}},
		"Lease":      {"Who takes the lease stops the sync.", one("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: headgate-prod, namespace: team}\n"), []string{"all.yaml:1"}},
		"LeaseBeta":  {"The version does not matter.", one("apiVersion: coordination.k8s.io/v1beta1\nkind: Lease\nmetadata: {name: headgate-prod}\n"), []string{"all.yaml:1"}},
		"List":       {"Items of a list are objects, too.", one("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: headgate-prod, namespace: headgate-system}\n"), []string{"all.yaml:7"}},
		"Kustomize": {"It is the built object that counts.", fstest.MapFS{
			"kustomization.yaml": file("namePrefix: headgate-\nnamespace: headgate-system\nresources: [all.yaml]\n"),
			"all.yaml":           file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: prod}\n"),
		}, []string{"all.yaml:1"}},
		"KustomizeGenerator": {"A generated one, too.", fstest.MapFS{
			"kustomization.yaml": file("namespace: headgate-system\ngeneratorOptions: {labels: {cli-utils.sigs.k8s.io/inventory-id: a}}\nconfigMapGenerator: [{name: a, literals: [a=b]}]\n"),
		}, []string{"kustomization.yaml:3"}},
		"Several":   {"Everything that is wrong is said at once.", one(named + "---\n" + "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: headgate-prod}\n"), []string{"all.yaml:1", "all.yaml:5"}},
		"LocalOnly": {"It is not applied.", one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: headgate-prod, namespace: headgate-system, annotations: {config.kubernetes.io/local-config: \"true\"}}\n"), nil},
		"Elsewhere": {"A dashboard is no inventory.", one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: headgate-dashboard, namespace: monitoring}\n"), nil},
		"Secret":    {"Credentials of a Sync may be called so.", one("apiVersion: v1\nkind: Secret\nmetadata: {name: headgate-git, namespace: headgate-system}\nstringData: {password: x}\n"), nil},
		"OtherKind": {"Only objects that Headgate makes are meant.", one("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: headgate-prod, namespace: headgate-system}\n"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := render.Render(render.Input{Files: tc.files}, render.Options{})
			var problems catalogue.Errors
			if err != nil && !errors.As(err, &problems) {
				t.Fatal(err)
			}
			var at []string
			for _, p := range problems {
				at = append(at, fmt.Sprint(p.Origin))
			}
			slices.Sort(at)
			if diff := cmp.Diff(tc.at, at); diff != "" {
				t.Errorf("%s\nplaces of errors (-want +got):\n%s\n%v", tc.reason, diff, err)
			}
		})
	}
}
