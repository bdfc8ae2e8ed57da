package baseline_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
)

func declaring(apiVersion, kind, plural, scope, names string) string {
	return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: " + plural + ".acme.org}\nspec:\n  group: acme.org\n" + scope + names +
		"  versions: [{name: v1, served: true, storage: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}]\n"
}

func object(apiVersion, kind, namespace string) string {
	return "---\napiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: a" + namespace + "}\n"
}

// compared returns the report of a comparison of two commits without a cluster.
func compared(t *testing.T, before, after string) report.Report {
	t.Helper()
	base := given.Desired(t, render.OwnerHeadgate, map[string]string{"all.yaml": before})
	seen, err := baseline.Baseline{Base: base, Sync: given.Sync}.Observe(t.Context(), given.Desired(t, render.OwnerHeadgate, map[string]string{"all.yaml": after}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := draft.Compute(seen)
	if err != nil {
		t.Fatal(err)
	}
	return report.New(p, nil, false)
}

// A reviewer must be able to tell a cluster-scoped object from a namespaced one whose manifest sets no namespace.
func TestHomesAreShown(t *testing.T) {
	const crd = "apiextensions.k8s.io/v1"
	xrds := "apiextensions.crossplane.io/"
	commit := declaring(crd, "CustomResourceDefinition", "shops", "  scope: Namespaced\n", "  names: {kind: Shop, plural: shops}\n") + "---\n" +
		declaring(crd, "CustomResourceDefinition", "planets", "  scope: Cluster\n", "  names: {kind: Planet, plural: planets}\n") + "---\n" +
		declaring(xrds+"v2", "CompositeResourceDefinition", "stores", "", "  names: {kind: Store, plural: stores}\n") + "---\n" +
		declaring(xrds+"v1", "CompositeResourceDefinition", "xolds", "", "  names: {kind: XOld, plural: xolds}\n  claimNames: {kind: Old, plural: olds}\n")
	objects := object("v1", "ConfigMap", "") + object("v1", "Secret", ", namespace: team") + object("v1", "Namespace", "") +
		object("acme.org/v1", "Shop", "") + object("acme.org/v1", "Planet", ", namespace: none") + object("acme.org/v1", "Store", "") +
		object("acme.org/v1", "XOld", "") + object("acme.org/v1", "Old", "") + object("example.org/v1", "Bucket", "") + object("elsewhere.org/v1", "Thing", "")
	want := []string{
		"Bucket.example.org/a", "ConfigMap/default/a", "Namespace/a", "Old.acme.org/default/a", "Planet.acme.org/a", "Secret/team/a",
		"Shop.acme.org/default/a", "Store.acme.org/default/a", "Thing.elsewhere.org/a", "XOld.acme.org/a",
	}
	for name, r := range map[string]report.Report{
		"Create": compared(t, commit, commit+objects),
		"Prune":  compared(t, commit+objects, commit),
		"Both":   compared(t, commit+objects, object("v1", "ConfigMap", "-2")), // only the base knows the kinds
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			var text, page strings.Builder
			if err := (report.Text{}).Write(&text, r); err != nil {
				t.Fatal(err)
			}
			if err := report.Markdown(&page, r); err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range r.Steps {
				if s.ID.Name != "a" {
					continue
				}
				got = append(got, s.ID.String())
				id, err := json.Marshal(s.ID)
				if err != nil {
					t.Fatal(err)
				}
				for what, output := range map[string]string{"the text": text.String(), "the page": page.String()} {
					if !strings.Contains(output, s.ID.String()) {
						t.Errorf("%s is not in %s:\n%s", s.ID, what, output)
					}
				}
				if !bytes.Contains(raw, id) {
					t.Errorf("%s is not in the JSON", id)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A commit that only adds the default namespace to its manifests changes nothing in a cluster. If the report showed a prune and a
// create, the reviewer would look for a loss that does not happen.
func TestHomeIsWrittenOut(t *testing.T) {
	for name, spaces := range map[string][2]string{"Out": {"", ", namespace: default"}, "Away": {", namespace: default", ""}} {
		t.Run(name, func(t *testing.T) {
			before := object("v1", "ConfigMap", spaces[0])
			if r := compared(t, before, object("v1", "ConfigMap", spaces[1])); r.Changes() {
				t.Errorf("%+v", r.Steps)
			}
			r := compared(t, before+"data: {key: before}\n", object("v1", "ConfigMap", spaces[1])+"data: {key: after}\n")
			if len(r.Steps) != 1 || r.Steps[0].Action != plan.Update || len(r.Steps[0].Changes) != 1 || r.Steps[0].Changes[0].Path != "data.key" {
				t.Errorf("%+v", r.Steps)
			}
		})
	}
	if r := compared(t, object("v1", "ConfigMap", ""), object("v1", "ConfigMap", ", namespace: team")); r.Summary.Created != 1 || r.Summary.Pruned != 1 {
		t.Errorf("Another namespace is another object: %+v", r.Summary)
	}
}
