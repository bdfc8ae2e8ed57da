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
		"Name":       {"An inventory in a commit could be adopted or pruned.", one(named), []string{"all.yaml:1"}},
		"Sibling":    {"A further part of the inventory contains values.", one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values-0123.headgate-prod, namespace: headgate-system}\n"), []string{"all.yaml:1"}},
		"Label":      {"An inventory may be in any namespace, and cli-utils uses the same label.", one("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: any\n  namespace: team\n  labels: {cli-utils.sigs.k8s.io/inventory-id: \"\"}\n"), []string{"all.yaml:1"}},
		"PartLabel":  {"Objects with this label are deleted as unused parts of an inventory.", one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: any, labels: {headgate.dev/inventory-values-of: team.prod}}\n"), []string{"all.yaml:1"}},
		"Annotation": {"The annotation identifies an inventory even without the label.", one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: any, annotations: {headgate.dev/inventory: '{\"format\":1}'}}\n"), []string{"all.yaml:1"}},
		"Key":        {"The key of the digests of Secrets must not come from a commit.", one("apiVersion: v1\nkind: Secret\nmetadata: {name: headgate-prod, namespace: team}\nstringData: {digest-key: x}\n"), []string{"all.yaml:1"}},
		"Lease":      {"Anyone who holds the lease can stop the sync.", one("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: headgate-prod, namespace: team}\n"), []string{"all.yaml:1"}},
		"LeaseBeta":  {"The version of the API does not matter.", one("apiVersion: coordination.k8s.io/v1beta1\nkind: Lease\nmetadata: {name: headgate-prod}\n"), []string{"all.yaml:1"}},
		"List":       {"Items of a List are checked, too.", one("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: headgate-prod, namespace: headgate-system}\n"), []string{"all.yaml:7"}},
		"Kustomize": {"The object that kustomize builds is checked.", fstest.MapFS{
			"kustomization.yaml": file("namePrefix: headgate-\nnamespace: headgate-system\nresources: [all.yaml]\n"),
			"all.yaml":           file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: prod}\n"),
		}, []string{"all.yaml:1"}},
		"KustomizeGenerator": {"An object that kustomize generates is checked, too.", fstest.MapFS{
			"kustomization.yaml": file("namespace: headgate-system\ngeneratorOptions: {labels: {cli-utils.sigs.k8s.io/inventory-id: a}}\nconfigMapGenerator: [{name: a, literals: [a=b]}]\n"),
		}, []string{"kustomization.yaml:3"}},
		"Several":   {"All errors are reported at once.", one(named + "---\n" + "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: headgate-prod}\n"), []string{"all.yaml:1", "all.yaml:5"}},
		"LocalOnly": {"An object for local use is not applied, so it is allowed.", one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: headgate-prod, namespace: headgate-system, annotations: {config.kubernetes.io/local-config: \"true\"}}\n"), nil},
		"Elsewhere": {"A ConfigMap in another namespace is allowed.", one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: headgate-dashboard, namespace: monitoring}\n"), nil},
		"Secret":    {"A Secret with credentials of a Sync may have such a name.", one("apiVersion: v1\nkind: Secret\nmetadata: {name: headgate-git, namespace: headgate-system}\nstringData: {password: x}\n"), nil},
		"OtherKind": {"Objects of kinds that Headgate never creates are allowed.", one("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: headgate-prod, namespace: headgate-system}\n"), nil},
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
