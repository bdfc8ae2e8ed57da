package fit

import (
	"testing"

	"headgate.dev/headgate/render/schema"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	j, err := yaml.YAMLToJSON([]byte(text))
	u := &unstructured.Unstructured{}
	if err == nil {
		err = u.UnmarshalJSON(j)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Composite resources and claims keep the fields that Crossplane adds, and lose those that their XRD no longer declares.
func TestComposite(t *testing.T) {
	crd := func(name, spec string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + ".example.org}\nspec:\n  versions:\n" +
			"  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {" +
			"apiVersion: {type: string}, kind: {type: string}, metadata: {type: object, properties: {name: {type: string, maxLength: 63}}}, " +
			"spec: {type: object, properties: {size: {type: integer}, note: {type: string}, " + spec + "}}, status: {type: object, properties: {conditions: {type: array, items: {type: object}}}}}}}}\n"
	}
	const (
		modern = "crossplane: {type: object, properties: {compositionRef: {type: object, properties: {name: {type: string}}}}}"
		legacy = "compositionRef: {type: object, properties: {name: {type: string}}}, resourceRef: {type: object, properties: {apiVersion: {type: string}, kind: {type: string}, name: {type: string}}}, resourceRefs: {type: array, items: {type: object, properties: {apiVersion: {type: string}, kind: {type: string}, name: {type: string}}}}"
	)
	xrd := func(version, more, spec string) string {
		return "apiVersion: apiextensions.crossplane.io/" + version + "\nkind: CompositeResourceDefinition\nmetadata: {name: apps.example.org}\nspec:\n  group: example.org\n" + more +
			"  names: {kind: App, plural: apps}\n  versions:\n  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object, properties: {" + spec + "}}}}\n"
	}
	const same = "spec: {type: object, properties: {size: {type: integer}, note: {type: string}}}"
	cases := map[string]struct {
		reason         string
		crd, xrd       string
		object         string
		loses, refused []string
	}{
		"Same":       {"The object does not change, and the selected composition stays.", crd("apps", modern), xrd("v2", "", same), "spec: {size: 1, crossplane: {compositionRef: {name: a}}}", nil, nil},
		"FieldGoes":  {"The value of a removed field is lost.", crd("apps", modern), xrd("v2", "", "spec: {type: object, properties: {size: {type: integer}}}"), "spec: {size: 1, note: x}", []string{"spec.note"}, nil},
		"NoSpec":     {"Without a schema for spec, all its fields are lost except those of Crossplane.", crd("apps", modern), xrd("v2", "", ""), "spec: {size: 1, crossplane: {compositionRef: {name: a}}}", []string{"spec.size"}, nil},
		"Required":   {"The object lacks a field that is now required.", crd("apps", modern), xrd("v2", "", "spec: {type: object, required: [note], properties: {size: {type: integer}, note: {type: string}}}"), "spec: {size: 1}", nil, []string{"spec.note: required value"}},
		"Name":       {"The name of the object exceeds a new limit.", crd("apps", modern), xrd("v2", "", "metadata: {type: object, properties: {name: {type: string, maxLength: 2}}}, "+same), "spec: {}", nil, []string{"metadata.name: too long"}},
		"Legacy":     {"In a legacy XR, the fields of Crossplane are directly in spec.", crd("apps", legacy), xrd("v1", "", same), "spec: {size: 1, compositionRef: {name: a}, resourceRefs: [{apiVersion: v1, kind: Secret, name: a}]}", nil, nil},
		"Claim":      {"A claim has other fields of Crossplane.", crd("claims", legacy), xrd("v1", "  claimNames: {kind: Claim, plural: claims}\n", same), "spec: {size: 1, compositionRef: {name: a}, resourceRef: {apiVersion: example.org/v1, kind: App, name: a}}", nil, nil},
		"OfAnAuthor": {"A field of the author may have the name of a former field of Crossplane.", crd("apps", modern+", resourceRefs: {type: string}"), xrd("v2", "  scope: Cluster\n", same), "spec: {resourceRefs: x}", []string{"spec.resourceRefs"}, nil},
		"Rule":       {"A rule that reads a new field of status applies to the whole object.", crd("apps", modern), xrd("v2", "", same+", status: {type: object, properties: {phase: {type: string}}}}, x-kubernetes-validations: [{rule: \"has(self.status.phase) || self.spec.size < 1\"}], x-kubernetes-map-type: granular, y: {"), "spec: {size: 1}\nstatus: {}", nil, []string{"invalid value: failed rule: has(self.status.phase) || self.spec.size < 1"}},
		"Status":     {"The schema of status does not apply, because Headgate does not write it.", crd("apps", modern), xrd("v2", "", same+", status: {type: object, required: [phase], properties: {phase: {type: string}}}"), "spec: {size: 1}\nstatus: {}", nil, nil},
		"Moves": {
			"Nothing converts objects when the stored version changes to v2.", crd("apps", modern), xrd("v2", "", same+"}}}}\n  - {name: v2, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}") + "",
			"spec: {size: 1}", []string{"spec.size"}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live, is := parsed(t, tc.crd), parsed(t, tc.xrd)
			if name == "Moves" {
				is.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["referenceable"] = false
			}
			after, err := compositeOf(live, is)
			if err != nil {
				t.Fatal(err)
			}
			j, err := schema.NewJudge(live, after, "v1")
			if err != nil {
				t.Fatal(err)
			}
			loses, refused := j.Of(t.Context(), parsed(t, "apiVersion: example.org/v1\nkind: App\nmetadata: {name: abc}\n"+tc.object))
			if diff := cmp.Diff([][]string{tc.loses, tc.refused}, [][]string{loses, refused}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nlost, and refused (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	claims := parsed(t, crd("claims", legacy))
	if after, err := compositeOf(claims, parsed(t, xrd("v1", "", same))); err != nil || after != claims {
		t.Errorf("an XRD without claims changes their CRD: %v", err)
	}
}
