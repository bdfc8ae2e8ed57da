package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// TestInactiveDefinitions previews the same change of a package four times: in the tree and in a registry, with CRDs made by
// Headgate and by Crossplane. The result for inactive definitions must be the same.
func TestInactiveDefinitions(t *testing.T) {
	const more, less = "size: {type: string}, name: {type: string}", "name: {type: string}"
	version := func(name, fields string) string {
		return "  - name: " + name + "\n    served: true\n    storage: " + fmt.Sprint(name == "v1") +
			"\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + fields + "}}}}}\n"
	}
	crd := func(plural string, versions ...string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + ".example.org}\nspec:\n  group: example.org\n" +
			"  names: {kind: " + strings.ToUpper(plural[:1]) + plural[1:] + ", plural: " + plural + "}\n  scope: Namespaced\n  versions:\n" + strings.Join(versions, "")
	}
	boats := func(fields string) map[string]string {
		return map[string]string{"boats.yaml": crd("boats", version("v1", fields))}
	}
	cases := map[string]struct {
		reason     string
		base, head map[string]string // files of the package
		from, to   bool              // whether boats are active before and after
		breaks     int               // inactive ones
		word       report.Word       // Safe if empty
		object     report.Word       // for a definition that is an object of the commit, and that the commit deletes
	}{
		"LosesField":   {reason: "No API serves the definition, and a policy may activate it later.", base: boats(more), head: boats(less), breaks: 1},
		"LosesVersion": {reason: "After a later activation, objects in that version could not be read.", base: map[string]string{"boats.yaml": crd("boats", version("v1", more), version("v2", more))}, head: boats(more), breaks: 1},
		"Goes":         {reason: "A policy may name the deleted definition later.", base: boats(more), head: map[string]string{"cars.yaml": crd("cars", version("v1", more))}, breaks: 1, object: report.Look}, // the commit deletes an object, and an earlier commit may have activated it
		"GainsField":   {reason: "An added field breaks nothing.", base: boats(less), head: boats(more)},
		"Same":         {reason: "An unchanged definition is not even decoded.", base: boats(more), head: boats(more)},
		"Moves": {
			reason: "The name identifies a definition, not the file.",
			base:   boats(more), head: map[string]string{"other/fleet.yaml": boats(more)["boats.yaml"] + "---\n" + crd("cars", version("v1", more))},
		},
		"MovesAndBreaks": {
			reason: "The name also identifies a definition that changes while it moves.", breaks: 1,
			base: boats(more), head: map[string]string{"other/fleet.yaml": crd("cars", version("v1", more)) + "---\n" + boats(less)["boats.yaml"]},
		},
		"OneOfTwoInAFile": {
			reason: "The other definition in the changed file is unchanged.", breaks: 1,
			base: map[string]string{"all.yaml": crd("cars", version("v1", more)) + "---\n" + boats(more)["boats.yaml"]},
			head: map[string]string{"all.yaml": crd("cars", version("v1", more)) + "---\n" + boats(less)["boats.yaml"]},
		},
		"BecomesActive": {
			reason: "No objects can exist before the merge.", base: boats(more), head: boats(less), to: true, breaks: 1,
		},
		"StaysActive": {
			reason: "Objects of an active definition may exist.", base: boats(more), head: boats(less), from: true, to: true, word: report.Blocked,
		},
		"NoLongerNamed": {
			reason: "The definition stays active although no policy names it any more.", base: boats(more), head: boats(less), from: true, word: report.Blocked,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.word == "" {
				tc.word = report.Safe
			}
			tree, named := commits{}, images{commits{}, map[string][]byte{}}
			for ref, files := range map[string]map[string]string{"v1.0.0": tc.base, "v2.0.0": tc.head} {
				active := tc.from
				if ref == "v2.0.0" {
					active = tc.to
				}
				names := "ships.example.org" // a policy without a match has a warning
				if active {
					names += ", boats.example.org"
				}
				policy := &fstest.MapFile{Data: []byte("apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: platform}\n" +
					"spec:\n  activate: [" + names + "]\n")}
				content := fstest.MapFS{"crossplane.yaml": {Data: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: it}\nspec: {capabilities: [safe-start]}\n")}}
				inTree := fstest.MapFS{"policy.yaml": policy, "it/crossplane.yaml": content["crossplane.yaml"]}
				files["ships.yaml"] = crd("ships", version("v1", more))
				for path, text := range files {
					inTree["it/crds/"+path] = &fstest.MapFile{Data: []byte(text)}
					content["crds/"+path[strings.LastIndexByte(path, '/')+1:]] = &fstest.MapFile{Data: []byte(text)}
				}
				tree[ref], named.versions[ref] = inTree, streamOf(content)
				named.commits[ref] = fstest.MapFS{"policy.yaml": policy, "provider.yaml": &fstest.MapFile{Data: []byte(
					"apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: it}\nspec:\n  package: registry.example.org/acme/it:" + ref + "\n")}}
			}
			type outcome struct {
				Word   report.Word
				Breaks int
				Line   bool // whether the summary line counts them
			}
			want, got := map[string]outcome{}, map[string]outcome{}
			for place, source := range map[string]Source{"tree": tree, "registry": named} {
				for _, owner := range []render.Owner{render.OwnerHeadgate, render.OwnerCrossplane} {
					r := Reconciler{Source: source, Sync: inventory.Sync{Name: "platform"}, Options: render.Options{Owner: owner}, Guarding: trusting}
					made, err := r.Preview(t.Context(), Pull{Base: "v1.0.0", Head: "v2.0.0"})
					if err != nil {
						t.Fatal(err)
					}
					it := place + ", " + string(owner)
					want[it] = outcome{tc.word, tc.breaks, tc.breaks > 0}
					if tc.object != "" && place == "tree" && owner == render.OwnerCrossplane {
						want[it] = outcome{Word: tc.object} // a deletion
					}
					of := outcome{Word: made.Judgement.Word, Line: strings.Contains(made.Line(), "inactive one")}
					for _, g := range made.Judgement.Because {
						if g.Cause == "inactive-breaks" {
							of.Breaks += g.Count
						}
					}
					got[it] = of
					if t.Failed() || of != want[it] {
						t.Logf("%s: %s", it, made.Line())
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestInactiveNotCompared previews inactive definitions that cannot be compared. They must not block a merge, but must be reported.
func TestInactiveNotCompared(t *testing.T) {
	crd := func(fields string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: boats.example.org\nspec:\n  group: example.org\n" +
			"  names:\n    kind: Boat\n    plural: boats\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n" +
			"    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n" + fields
	}
	const fine = "          a: {type: string}\n          b: {type: string}\n"
	cases := map[string]struct {
		reason     string
		base, head string
		nodes      int // limit for all documents together
		want       string
	}{
		"MalformedHead": {
			reason: "A pass does not decode an inactive definition.", base: crd(fine), head: crd("          a: {type: string}\n          a: {type: string}\n"),
			want: "1 inactive definition not compared: p/crds/boats.yaml:20: cannot decode: key \"a\" already set in map",
		},
		"MalformedBase": {
			reason: "The head repairs the definition.", base: crd("          a: {type: string}\n          a: {type: string}\n"), head: crd(fine),
			want: "1 inactive definition not compared: p/crds/boats.yaml:20: cannot decode: key \"a\" already set in map",
		},
		"TooLarge": {
			reason: "The author decides how large a definition is, and the limit for all documents applies.", base: crd(fine), head: crd(fine + "          c: {type: string}\n"), nodes: 60,
			want: "1 inactive definition not compared: p/crds/boats.yaml: cannot read: the documents that the commit has decoded hold more than the limit of 60 nodes together",
		},
		"Huge": {
			reason: "The limit for one document applies, too.", base: crd(fine), head: crd(fine + "          c:\n            enum:\n" + strings.Repeat("            - x\n", 100_000)),
			want: "1 inactive definition not compared: p/crds/boats.yaml:1: cannot decode: it has about 200",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := commits{}
			for ref, text := range map[string]string{"base": tc.base, "head": tc.head} {
				of[ref] = fstest.MapFS{
					"p/crds/boats.yaml":   {Data: []byte(text)},
					"p/crossplane.yaml":   {Data: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: it}\nspec: {capabilities: [safe-start]}\n")},
					"config/settled.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: it, namespace: default}\n")},
				}
			}
			r := Reconciler{Source: of, Sync: inventory.Sync{Name: "platform"}, Options: render.Options{Limits: manifest.Limits{TotalNodes: tc.nodes}}}
			made, err := r.Preview(t.Context(), Pull{Base: "base", Head: "head"})
			if err != nil {
				t.Fatal(err)
			}
			output := report.Comment(made, 65_536)
			var found []string
			for _, f := range made.Findings {
				found = append(found, string(f.Severity)+" "+f.Rule+" "+f.Message)
			}
			if made.Judgement.Word != report.Safe || !strings.Contains(strings.Join(found, "\n")+output, tc.want) {
				t.Errorf("%s\nit is %s, want safe and %q:\n%s\n%s", tc.reason, made.Judgement.Word, tc.want, strings.Join(found, "\n"), output)
			}
		})
	}
}
