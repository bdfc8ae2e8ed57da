package v1alpha1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	openapi "k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/fixtures/golden"
)

// TestSchemaOfSync compares the JSON schema with which editors check a Sync with the CRD. With -update it writes the schema.
func TestSchemaOfSync(t *testing.T) {
	crd := decode(t, "../../../examples/controller/crds/headgate.dev_syncs.yaml")
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	sync := closed(version["schema"].(map[string]any)["openAPIV3Schema"]).(map[string]any)
	properties := sync["properties"].(map[string]any)
	delete(properties, "status")
	properties["apiVersion"] = map[string]any{"type": "string", "enum": []any{"headgate.dev/v1alpha1"}}
	properties["kind"] = map[string]any{"type": "string", "enum": []any{"Sync"}}
	sync["$schema"], sync["$id"], sync["title"] = "http://json-schema.org/draft-07/schema#", "https://headgate.dev/schemas/sync.json", "Sync"
	sync["required"] = []any{"apiVersion", "kind", "metadata", "spec"}
	text, err := json.MarshalIndent(sync, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "schemas/sync.json", string(text)+"\n")
}

// closed returns a schema of a CRD as one of JSON: without the extensions of Kubernetes, and with an error for an unknown field.
func closed(value any) any {
	switch v := value.(type) {
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = closed(v[i])
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for key, value := range v {
			if !strings.HasPrefix(key, "x-kubernetes-") {
				all[key] = closed(value)
			}
		}
		if _, has := all["properties"].(map[string]any); has && all["type"] == "object" {
			all["additionalProperties"] = false
		}
		return all
	}
	return value
}

// TestSchemasJudge proves that the schemas accept the examples, and refuse mistakes.
func TestSchemasJudge(t *testing.T) {
	const sync = "apiVersion: headgate.dev/v1alpha1\nkind: Sync\nmetadata: {name: a}\nspec:\n  source: {repo: https://git.example.org/a.git}\n"
	const approvals = "apiVersion: headgate.dev/v1alpha1\nkind: Approvals\napprovals:\n- "
	const entry = `{digests: ["3f786850e387550fdab836ed7e6dc881"], by: alice, why: "", expires: "2026-01-31T12:00:00Z", upTo: 12}`
	cases := map[string]struct {
		reason string
		schema string
		text   string
		valid  bool
	}{
		"Sync":             {"The smallest Sync is valid.", "sync", sync, true},
		"UnknownField":     {"A typo is an error, as in headgate run.", "sync", sync + "  intervall: 5m\n", false},
		"UnknownInSource":  {"A typo below a field is one, too.", "sync", strings.Replace(sync, "{repo:", "{branch: main, repo:", 1), false},
		"UnknownWord":      {"An enumeration lists its words.", "sync", sync + "  drift: Ignore\n", false},
		"OtherKind":        {"The file of another object is no Sync.", "sync", strings.Replace(sync, "kind: Sync", "kind: Approvals", 1), false},
		"Approvals":        {"An entry as headgate approve --write writes it.", "approvals", approvals + entry, true},
		"WithoutExpiry":    {"An entry without an end is refused.", "approvals", approvals + "{digests: []}", false},
		"DigestOfNoReport": {"A digest has 32 hexadecimal digits.", "approvals", approvals + strings.Replace(entry, "3f78", "3F", 1), false},
		"TooMuch":          {"The amount is bounded.", "approvals", approvals + strings.Replace(entry, "12}", "1000001}", 1), false},
		"UnknownEntry":     {"A typo in an entry is an error.", "approvals", approvals + strings.Replace(entry, "why", "reason", 1), false},
	}
	for _, example := range []string{"run/sync.yaml", "run/platform.yaml", "observe/sync.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../../examples", example))
		if err != nil {
			t.Fatal(err)
		}
		tc := cases["Sync"]
		tc.reason, tc.text = "An example that users copy is valid.", string(text)
		cases[example] = tc
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("schemas/" + tc.schema + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var schema openapi.Schema
			if err := json.Unmarshal(text, &schema); err != nil {
				t.Fatal(err)
			}
			var value any
			if err := yaml.Unmarshal([]byte(tc.text), &value); err != nil {
				t.Fatal(err)
			}
			if result := validate.NewSchemaValidator(&schema, nil, "", strfmt.Default).Validate(value); result.IsValid() != tc.valid {
				t.Errorf("%s\nthe schema %s accepts it: %t, want %t: %v", tc.reason, tc.schema, !tc.valid, tc.valid, result.Errors)
			}
		})
	}
}

func decode(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]any{}
	if err := yaml.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
