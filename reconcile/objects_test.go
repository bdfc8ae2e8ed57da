package reconcile

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/fit"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// populated is a cluster with the CRD of a kind and with objects of that kind.
type populated struct {
	Observer
	crd     *unstructured.Unstructured
	objects []*unstructured.Unstructured
	looked  int
}

func (h *populated) Answer(ctx context.Context, questions []question.Any) (question.Answers, error) {
	all := question.Answers{}
	for _, q := range questions {
		fits, is := q.(question.Fits)
		if !is {
			all[q] = question.Counted{Count: int64(len(h.objects)), Example: "one of them"}
			continue
		}
		h.looked++
		fitting, err := fit.New(fits.After, h.crd, "v1")
		if err != nil {
			all[q] = given.Unknown(reason.Of(err))
			continue
		}
		for _, o := range h.objects {
			fitting.Add(ctx, o.DeepCopy())
		}
		if all[q], err = fitting.Answer(false); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// In a preview with a cluster, live objects decide which changes break, as in a pass: for CRDs and MRDs, for definitions in an
// image, and for XRDs.
func TestObjectsDecideInPreviews(t *testing.T) {
	unstructuredOf := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		j, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = u.UnmarshalJSON(j)
		}
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	const all, less = "size: {type: string}, note: {type: string}", "size: {type: string}"
	versions := func(storage, fields string) string {
		return "  group: example.org\n  names: {kind: Boat, plural: boats}\n  versions:\n  - name: v1\n    served: true\n    " + storage + ": true\n" +
			"    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + fields + "}}, status: {type: object, properties: {" + fields + "}}}}}\n"
	}
	named := func(kind string) string {
		return "kind: " + kind + "\nmetadata: {name: boats.example.org}\nspec:\n"
	}
	crd := func(fields string) string {
		return "apiVersion: apiextensions.k8s.io/v1\n" + named("CustomResourceDefinition") + "  scope: Namespaced\n" + versions("storage", fields)
	}
	mrd := func(fields string) string {
		return "apiVersion: apiextensions.crossplane.io/v1alpha1\n" + named("ManagedResourceDefinition") + "  scope: Namespaced\n" + versions("storage", fields)
	}
	xrd := func(fields string) string {
		return "apiVersion: apiextensions.crossplane.io/v2\n" + named("CompositeResourceDefinition") + versions("referenceable", fields)
	}
	const policy = "---\napiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: team}\nspec:\n  activate: [\"boats.example.org\"]\n"
	plain := func(base, head string) Source {
		return commits{"base": fstest.MapFS{"a.yaml": {Data: []byte(base)}}, "head": fstest.MapFS{"a.yaml": {Data: []byte(head)}}}
	}
	packaged := func(kind string, of func(string) string) Source {
		meta := "apiVersion: meta.pkg.crossplane.io/v1\nkind: " + kind + "\nmetadata: {name: it}\nspec: {capabilities: [safe-start]}\n---\n"
		line := "apiVersion: pkg.crossplane.io/v1\nkind: " + kind + "\nmetadata: {name: it}\nspec:\n  package: registry.example.org/acme/it:"
		return images{
			plain(line+"v1\n"+policy, line+"v2\n"+policy).(commits),
			map[string][]byte{"v1": []byte(meta + of(all)), "v2": []byte(meta + of(less))},
		}
	}
	sources := map[string]struct {
		source Source
		owner  render.Owner
	}{
		"CRD":           {plain(crd(all), crd(less)), render.OwnerHeadgate},
		"Definition":    {plain(mrd(all)+policy, mrd(less)+policy), render.OwnerHeadgate},
		"MRD":           {plain(mrd(all)+policy, mrd(less)+policy), render.OwnerCrossplane},
		"XRD":           {plain(xrd(all), xrd(less)), render.OwnerCrossplane},
		"Provider":      {packaged("Provider", crd), render.OwnerCrossplane},
		"Configuration": {packaged("Configuration", xrd), render.OwnerCrossplane},
	}
	objects := map[string]struct {
		reason  string
		objects []string
		held    string
		looks   bool
	}{
		"None":   {reason: "Without objects, none is read."},
		"Fit":    {reason: "No object sets the removed field in its spec, and a controller writes the status again.", objects: []string{"spec: {size: s}\nstatus: {note: x}", "spec: {}"}, looks: true},
		"Lose":   {reason: "An object sets the removed field, and the preview names it.", objects: []string{"spec: {size: s}", "spec: {note: x}"}, looks: true, held: "1 of 2 set spec.note, which is lost, for example Boat default/b"},
		"Unread": {reason: "If the objects cannot be read, the change counts as breaking.", objects: []string{"spec: {}"}, looks: true, held: "they cannot be looked at"},
	}
	for kind, from := range sources {
		for name, tc := range objects {
			t.Run(kind+name, func(t *testing.T) {
				place := &populated{crd: unstructuredOf(crd(all))}
				if name == "Unread" {
					place.crd = unstructuredOf(strings.ReplaceAll(crd(all), "name: v1", "name: v0"))
				}
				for _, o := range tc.objects {
					place.objects = append(place.objects, unstructuredOf("apiVersion: example.org/v1\nkind: Boat\nmetadata: {name: b, namespace: default}\n"+o))
				}
				r := Reconciler{Source: from.source, Sync: inventory.Sync{Name: "platform"}, Observer: place, Options: render.Options{Owner: from.owner}}
				made, err := r.Preview(t.Context(), Pull{Base: "base", Head: "head"})
				if err != nil {
					t.Fatal(err)
				}
				var held []string
				for _, s := range made.Steps {
					if s.Action == plan.Hold {
						held = append(held, s.Reason)
					}
				}
				if (len(held) == 1 && strings.Contains(held[0], tc.held)) != (tc.held != "") || tc.held == "" && len(held) > 0 {
					t.Errorf("%s\nheld: %q, want %q", tc.reason, held, tc.held)
				}
				if (place.looked > 0) != tc.looks || place.looked > 1 {
					t.Errorf("%s\nit looked %d times", tc.reason, place.looked)
				}
			})
		}
	}
}
