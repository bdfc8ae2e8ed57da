package catalogue_test

import (
	"strings"
	"testing"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

const details = `
apiVersion: headgate.dev/v1alpha1
kind: ConnectionDetails
metadata:
  name: databases
spec:
  definitions:
  - name: buckets.toy.example.org
    connectionDetails:
    - {name: endpoint, description: where it is}
    - {name: password, description: how to get in}
  - name: queues.toy.example.org
    connectionDetails: [{name: url, description: where it is}]
`

func TestDetails(t *testing.T) {
	c, err := read(tree(map[string]string{
		"toy/crossplane.yaml":  safeProvider,
		"toy/crds/buckets.yml": crd("buckets", "Bucket"),
		"toy/details.yaml":     strings.ReplaceAll(details, "queues", "tables"),
		"mrd.yaml":             mrd(""),
		"details.yaml":         strings.NewReplacer("buckets", "things", "queues", "nothings").Replace(details),
	}), "", catalogue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Objects) > 0 || c.Skipped[catalogue.Described] != 2 || len(c.Findings) > 0 {
		t.Errorf("they are counted and not applied, and belong anywhere: %d objects, skipped %v, findings %v", len(c.Objects), c.Skipped, c.Findings)
	}
	found, err := catalogue.Describe(c.Definitions, c.Details)
	if err != nil {
		t.Fatal(err)
	}
	want := []catalogue.ConnectionDetail{{Name: "endpoint", Description: "where it is"}, {Name: "password", Description: "how to get in"}}
	for _, d := range c.Definitions {
		if diff := cmp.Diff(want, d.ConnectionDetails); diff != "" {
			t.Errorf("%s (-want +got):\n%s", d.Name, diff)
		}
	}
	var rules []string
	for _, f := range found {
		rules = append(rules, f.Rule+"@"+f.Origin.String())
	}
	if diff := cmp.Diff([]string{"connection-details-of-unknown@details.yaml:11", "connection-details-of-unknown@toy/details.yaml:11"}, rules); diff != "" {
		t.Errorf("missing details (-want +got):\n%s", diff)
	}
}

func TestDetailsAreStrict(t *testing.T) {
	at := func(old, replacement string) map[string]string {
		return map[string]string{"d.yaml": strings.Replace(details, old, replacement, 1)}
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"UnknownField": {
			"An unknown field must be an error, because users would expect it to have an effect.", at("definitions:", "patterns: []\n  definitions:"),
			[]string{"d.yaml:6: spec.patterns is not known: there are [definitions]"},
		},
		"UnknownBelow": {
			"An unknown field at any depth is an error.", at("{name: endpoint,", "{name: endpoint, secret: a,"),
			[]string{"d.yaml:9: spec.definitions[0].connectionDetails[0].secret is not known"},
		},
		"NoDescription": {
			"The API server refuses a definition without a description.", at(", description: where it is", ""),
			[]string{"d.yaml:9: spec.definitions[0].connectionDetails[0].description must be a string"},
		},
		"WrongTypes": {
			"All errors are reported at once.", at("[{name: url, description: where it is}]", "[7]\n  - buckets"),
			[]string{
				"d.yaml:12: spec.definitions[1].connectionDetails[0] must be an object",
				"d.yaml:12: spec.definitions[1].connectionDetails[0].description must be a string",
				"d.yaml:12: spec.definitions[1].connectionDetails[0].name must be a string",
				"d.yaml:13: spec.definitions[2] must be an object",
				"d.yaml:13: spec.definitions[2].connectionDetails must be a list with at least one item",
				"d.yaml:13: spec.definitions[2].name must be a string",
			},
		},
		"Nothing": {
			"An object without a spec must be an error.", map[string]string{"d.yaml": object("headgate.dev/v1alpha1", "ConnectionDetails", "a")},
			[]string{"d.yaml:1: spec must be an object", "d.yaml:1: spec.definitions must be a list"},
		},
		"Twice": {
			"Keys must be unique.", at("name: password", "name: endpoint"),
			[]string{`d.yaml:10: spec.definitions[0].connectionDetails[1] is there twice: "endpoint"`},
		},
		"OtherVersion": {
			"An object of an unknown version must not be skipped.", at("v1alpha1", "v1"),
			[]string{"d.yaml:1: ConnectionDetails is not known in version headgate.dev/v1: use headgate.dev/v1alpha1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := read(tree(tc.files), "", catalogue.Options{})
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.Split(err.Error(), "\n")
			if len(got) != len(tc.want) {
				t.Fatalf("%s\nwant %d problems, got:\n%v", tc.reason, len(tc.want), err)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("%s\nproblem %d: want %q…, got %q", tc.reason, i, want, got[i])
				}
			}
		})
	}
}

func TestDescribeRefusesTwo(t *testing.T) {
	c, err := read(tree(map[string]string{"a.yaml": details, "b.yaml": details}), "", catalogue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = catalogue.Describe(nil, c.Details)
	if err == nil || !strings.HasPrefix(err.Error(), "b.yaml:7: the connection details of buckets.toy.example.org are declared at a.yaml:7 already") {
		t.Errorf("it is not known which of two is right: want both places, got %v", err)
	}
}

func TestReadDetails(t *testing.T) {
	all, err := catalogue.ReadDetails(tree(map[string]string{"d.yaml": documents(details, details)}), "d.yaml", manifest.Limits{})
	if err != nil || len(all) != 4 || all[0].Definition != "buckets.toy.example.org" || len(all[0].Connection) != 2 {
		t.Errorf("want all of a file, got %v, %v", all, err)
	}
	_, err = catalogue.ReadDetails(tree(map[string]string{"d.yaml": documents(details, mrd(""))}), "d.yaml", manifest.Limits{})
	if err == nil || !strings.HasPrefix(err.Error(), "d.yaml:16: this file is for objects of kind ConnectionDetails") {
		t.Errorf("a file that holds something else is not the one that was meant, got %v", err)
	}
}
