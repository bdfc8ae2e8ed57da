package schema

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const growing = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.1.0
    other: text
  name: buckets.example.org
spec:
  group: example.org
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: 'A bucket: it holds
          ''water'''
        properties:
          spec:
            description: |-
              properties:
                of a bucket
            properties:
              size:
                type: string
              tags:
                items:
                  properties:
                    key:
                      type: string
                  type: object
                type: array
            required:
            - size
            type: object
        type: object
    served: true
`

func TestGrows(t *testing.T) {
	cases := map[string]struct {
		reason   string
		old, new string // a part of the text, and what replaces it
		want     bool
	}{
		"Equal":      {"Nothing changes.", "", "", true},
		"Field":      {"A new field is optional.", "              tags:\n", "              region:\n                enum:\n                - a\n                type: string\n              tags:\n", true},
		"LastField":  {"The field may be the last one.", "            required:\n", "              zone:\n                type: string\n            required:\n", true},
		"BelowItems": {"Items are schemas.", "                      type: string\n", "                      type: string\n                    value:\n                      type: string\n", true},
		"Words":      {"Descriptions are for readers.", "                of a bucket", "                of a large\n                bucket", false},
		"OneLine":    {"A description on one line may get more.", "description: |-\n              properties:\n                of a bucket\n", "description: A bucket\n", true},
		"Added":      {"Text after a description is no field.", "                of a bucket\n", "                of a bucket\n              more:\n                type: string\n", false},
		"Generator":  {"Annotations of generators have no effect.", "v0.1.0", "v0.2.0", true},
		"Annotation": {"Other annotations may have one.", "other: text", "other: words", false},
		"Default":    {"A default appears in existing objects.", "              tags:\n", "              region:\n                default: a\n                type: string\n              tags:\n", false},
		"Rule":       {"A rule may not compile.", "              tags:\n", "              region:\n                type: string\n                x-kubernetes-validations:\n                - rule: self\n              tags:\n", false},
		"Required":   {"A required field is not optional.", "            - size\n", "            - size\n            - tags\n", false},
		"Limit":      {"A limit refuses values.", "              size:\n", "              size:\n                maxLength: 3\n", false},
		"Removed":    {"A field is removed.", "              size:\n                type: string\n", "", false},
		"Type":       {"A type changes.", "                type: string\n              tags", "                type: integer\n              tags", false},
		"Version":    {"A version is added.", "  - name: v1\n", "  - name: v2\n    served: true\n  - name: v1\n", false},
		"Unserved":   {"A version is not served any more.", "served: true", "served: false", false},
		"Metadata":   {"An object has metadata without a schema.", "          spec:\n", "          metadata:\n            type: object\n          spec:\n", false},
		"Quote":      {"A quote that is not closed hides the next field.", "              size:\n", "              note: '\n              size:\n", false},
		"Flow":       {"A mapping on one line is read by the parser.", "              tags:\n", "              region: {type: string}\n              tags:\n", false},
		"Anchor":     {"Anchors are read by the parser.", "              tags:\n", "              region: &a\n                type: string\n              tags:\n", false},
		"LineBreak":  {"YAML has more line breaks.", "              tags:\n", "              region:\n                description: a\u2028                type: string\n              tags:\n", false},
		"Comment":    {"Comments are read by the parser.", "              tags:\n", "              # more\n              tags:\n", false},
		"End":        {"Nothing may be missing at the end.", "    served: true\n", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Grows([]byte(growing), []byte(strings.Replace(growing, tc.old, tc.new, 1))); got != tc.want {
				t.Errorf("%s: Grows(...) = %t", tc.reason, got)
			}
		})
	}
	if Grows([]byte(strings.Replace(growing, "            required:\n", "            x-kubernetes-preserve-unknown-fields: true\n            required:\n", 1)),
		[]byte(strings.Replace(growing, "            required:\n", "              more:\n                type: string\n            x-kubernetes-preserve-unknown-fields: true\n            required:\n", 1))) {
		t.Error("Objects may have a value of a field that was not declared.")
	}
}

// TestGrowsIsSafe edits the text of real CRDs at random, with lines of the same text and with beginnings of other YAML. What grows
// breaks nothing, or cannot be read.
func TestGrowsIsSafe(t *testing.T) {
	var texts []string
	for _, archive := range []string{"provider-kubernetes", "provider-helm", "crossplane-core"} {
		files := fixtures.Corpus(t, archive)
		for _, path := range slices.Sorted(maps.Keys(files)) {
			if strings.HasPrefix(path, "crds/") && len(files[path].Data) < 30_000 {
				texts = append(texts, strings.TrimPrefix(string(files[path].Data), "---\n"))
			}
		}
	}
	grown, broken := 0, 0
	for seed := range uint64(4 * *mutations) {
		r := rand.New(rand.NewPCG(seed, 11))
		was := texts[r.IntN(len(texts))]
		is := edited(r, strings.SplitAfter(was, "\n"))
		if is == was || !Grows([]byte(was), []byte(is)) {
			continue
		}
		grown++
		var before, after map[string]any
		if err := yaml.UnmarshalStrict([]byte(was), &before); err != nil {
			t.Fatal(err)
		}
		if yaml.UnmarshalStrict([]byte(is), &after) != nil {
			broken++
			continue
		}
		if d := Compare(&unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: after}); len(d.Breaking()) > 0 {
			t.Errorf("seed %d: %v", seed, d.Breaking())
		}
	}
	t.Logf("%d edits: %d grow, of which %d cannot be read", 4**mutations, grown, broken)
	if grown < *mutations/50 {
		t.Errorf("only %d edits grow, so little is tested", grown)
	}
}

// edited returns lines with a few edits.
func edited(r *rand.Rand, lines []string) string {
	lines = slices.Clone(lines)
	for range 1 + r.IntN(2) {
		at := r.IntN(len(lines))
		indent := len(lines[at]) - len(strings.TrimLeft(lines[at], " "))
		deep := strings.Repeat(" ", max(0, indent+2*(r.IntN(3)-1)))
		from := r.IntN(len(lines))
		block := lines[from:min(len(lines), from+1+r.IntN(4))]
		switch r.IntN(5) {
		case 0: // lines from elsewhere, as they are
			lines = slices.Insert(lines, at, block...)
		case 1: // the same, at this depth
			var moved []string
			first := len(block[0]) - len(strings.TrimLeft(block[0], " "))
			for _, line := range block {
				own := len(line) - len(strings.TrimLeft(line, " "))
				moved = append(moved, strings.Repeat(" ", max(0, indent+own-first))+strings.TrimLeft(line, " "))
			}
			lines = slices.Insert(lines, at, moved...)
		case 2:
			lines = slices.Delete(lines, at, min(len(lines), at+1+r.IntN(3)))
		default:
			begin := []string{
				"new:\n", "new: text\n", "new:\n" + deep + "  type: string\n", "new: |-\n", "new: >\n", "new: \"\n", "new: '\n", "new: 'a''\n", "new: {\n", "new: [\n", "- new\n", "- new:\n", "new: &a\n",
				"properties:\n", "properties:\n" + deep + "  new:\n", "required:\n", "required:\n" + deep + "- new\n", "description: new\n", "description: |-\n", "description: 'a\n", "maxLength: 1\n", "type: string\n",
				"\n", "# new\n", "? new\n", "\tnew: a\n", "new:\n" + deep + "  properties:\n" + deep + "    more:\n" + deep + "      type: string\n",
			}
			lines = slices.Insert(lines, at, deep+begin[r.IntN(len(begin))])
		}
	}
	return strings.Join(lines, "")
}
