package manifest_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"
)

func TestMisreadKeys(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	cases := map[string]struct {
		reason, text string
		want         []manifest.MisreadKey
	}{
		"Words":    {"YAML 1.1 has many words for two values.", "data:\n  y: a\n  Off: b\n", []manifest.MisreadKey{{Written: "y", Means: "true", Line: 5}, {Written: "Off", Means: "false", Line: 6}}},
		"Numbers":  {"A number becomes its shortest text.", "data:\n  012: a\n  1.10: b\n  0x10: c\n", []manifest.MisreadKey{{Written: "012", Means: "10", Line: 5}, {Written: "1.10", Means: "1.1", Line: 6}, {Written: "0x10", Means: "16", Line: 7}}},
		"Flow":     {"A flow mapping has keys, too.", "data: {y: a, b: {no : c}}\n", []manifest.MisreadKey{{Written: "y", Means: "true", Line: 4}, {Written: "no", Means: "false", Line: 4}}},
		"Explicit": {"A key may stand alone.", "data:\n  ? on\n  : a\n", []manifest.MisreadKey{{Written: "on", Means: "true", Line: 5}}},
		"Same":     {"These become the text that the author wrote.", "data:\n  true: a\n  8080: b\n  -1: c\n  nope: d\n", nil},
		"Quoted":   {"Quotes make text.", "data:\n  \"y\": a\n  'on': b\n  !!str no: c\n", nil},
		"Text":     {"A program is a value.", "data:\n  a: |\n    y: 1\n    012: 2\n", nil},
		"Values":   {"Values are what schemas check.", "data:\n  a: y\n  b: [on, 012]\n", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := manifest.NewReader(fstest.MapFS{"a.yaml": {Data: []byte(head + tc.text)}}, manifest.Limits{}, nil)
			documents, err := r.Read("a.yaml")
			if err != nil || len(documents) != 1 {
				t.Fatal(documents, err)
			}
			if diff := cmp.Diff(tc.want, documents[0].MisreadKeys(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nMisreadKeys() (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A key is misread if and only if quoting it changes the document.
func FuzzMisreadKeys(f *testing.F) {
	for word := range strings.FieldsSeq("y Y yes on off n no true True FALSE 012 0o12 1.0 1e3 0x1 .5 +1 -0 1_000 12:30 2020-01-01 ~ null .inf a 10 <<") {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._") != "" || strings.HasPrefix(word, "-") && len(word) < 2 || word[0] == '.' && strings.Trim(word, ".") == "" {
			return
		}
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  " + word + ": x\n"
		documents, err := manifest.NewReader(fstest.MapFS{"a.yaml": {Data: []byte(text)}}, manifest.Limits{}, nil).Read("a.yaml")
		if err != nil || len(documents) != 1 {
			return
		}
		object, err := documents[0].Decode()
		if err != nil {
			return
		}
		data, _ := object.Object["data"].(map[string]any)
		_, same := data[word]
		if odd := documents[0].MisreadKeys(); same != (len(odd) == 0) {
			t.Errorf("%q becomes %v, and MisreadKeys() = %v", word, data, odd)
		}
		if _, err := yaml.YAMLToJSON([]byte(text)); err != nil {
			t.Errorf("the API server cannot read %q: %v", text, err)
		}
	})
}
