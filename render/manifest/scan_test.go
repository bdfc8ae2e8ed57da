package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/fixtures/corpus"
)

// decoded returns the header as the YAML library decodes it.
func decoded(doc []byte) (Header, bool) {
	j, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return Header{}, false
	}
	var v any
	if json.Unmarshal(j, &v) != nil {
		return Header{}, false
	}
	m, ok := v.(map[string]any)
	return headerOf(m), ok
}

//test:unraced
func TestScanCorpus(t *testing.T) {
	scanned, silent := 0, 0
	inCorpus(t, func(archive, name string, raw []byte) {
		scanned++
		got, ok := Scan(raw)
		if !ok {
			silent++
			if name != "crossplane.yaml" { // its annotations have many lines
				t.Errorf("%s: %s: Scan is silent", archive, name)
			}
			return
		}
		// Decoding all 98 MB of the largest packages takes minutes with -race.
		if (archive == corpus.AWS || archive == corpus.MadeUp) && scanned%20 != 0 {
			return
		}
		want, ok := decoded(raw)
		if !ok {
			t.Errorf("%s: %s: cannot decode", archive, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s: Scan(...) (-decoded +scanned):\n%s", archive, name, diff)
		}
	})
	t.Logf("%d documents scanned, silent about %d", scanned, silent)
}

func BenchmarkScan(b *testing.B) {
	var docs [][]byte
	var size int64
	inCorpus(b, func(archive, name string, raw []byte) {
		if archive != corpus.MadeUp || name == "crossplane.yaml" {
			return
		}
		docs = append(docs, raw)
		size += int64(len(raw))
	})
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for _, doc := range docs {
			if _, ok := Scan(doc); !ok {
				b.Fatal("Scan is silent")
			}
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, doc := range scanSeeds {
		f.Add(doc)
	}
	f.Fuzz(agree)
}

// FuzzScanTokens builds documents from the tokens that Scan looks for, one per byte of input. Documents of random bytes can hardly
// ever be decoded.
func FuzzScanTokens(f *testing.F) {
	for seed := range byte(32) {
		tokens := make([]byte, 24)
		for i := range tokens {
			tokens[i] = byte(i)*seed + seed
		}
		f.Add(tokens)
	}
	f.Fuzz(func(t *testing.T, tokens []byte) {
		var doc strings.Builder
		for _, token := range tokens {
			doc.WriteString(scanTokens[int(token)%len(scanTokens)])
		}
		agree(t, doc.String())
	})
}

var scanTokens = []string{
	"\n", "\n ", "\n  ", "\n   ", "\n    ", "\nspec:", "\nmetadata:", "\nkind: A", "\n  annotations:", "\n  names:",
	"\n    kind: ", "\n  state: ", "\n  name: ", "\n  other:", "\nother:", "\nother: ", "\n- ", "\n  - ", "\n---", "\n...", "\n%",
	" ", "- ", "-", ": ", ":", "\"", "'", "|", ">", "|2", ">-", "#", " # ", "{", "}", "[", "]", "{}", ",", "?", "? ", "&x ", "*x",
	"!!str ", "\\", "<<", "kind", "state", "a", "b: c", "1", "yes", "null", "~", "é", "\u2028", "\uFEFF", "\t", "\r",
}

// agree checks the invariant of Scan.
func agree(t *testing.T, doc string) {
	t.Helper()
	got, ok := Scan([]byte(doc))
	if !ok {
		return
	}
	want, ok := decoded([]byte(doc))
	if !ok {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("where Scan answers and the document can be decoded, they agree\nScan(%q) (-decoded +scanned):\n%s", doc, diff)
	}
}

const crdSeed = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.19.0
    "quoted": 'value'
  name: buckets.s3.aws.upbound.io
spec:
  group: s3.aws.upbound.io
  names:
    categories:
    - crossplane
    kind: Bucket
    plural: buckets
  scope: Cluster
  versions:
  - additionalPrinterColumns:
    - jsonPath: .status.conditions[?(@.type=='Synced')].status
      name: SYNCED
      type: string
    name: v1beta1
    schema:
      openAPIV3Schema:
        description: Bucket is the Schema for the Buckets API. Provides a "S3" bucket
          resource. 'kind: of'
        properties:
          a:
            description: |-
              kind: not this
                deeper # neither

              state: x
            enum: ["a", "b"]
            default: {}
          b:
            - "c: d
                e" # f
            - 'g''h'
status:
  state: y
`

var scanSeeds = []string{
	"kind: A\nmetadata:\n  annotations:\n    argocd.argoproj.io/hook: Skip\n    helm.sh/hook: 'crd-install '\n",
	"kind: A\nmetadata:\n  annotations: {helm.sh/hook: crd-install, argocd.argoproj.io/hook: PostDelete}\n",
	crdSeed,
	"apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceDefinition\nmetadata:\n  name: a.b\nspec:\n  state: Active\n  group: b\n  names: {kind: A}\n",
	"kind: A\napiVersion: v1\nmetadata:\n    name: x\n    namespace: y\n    labels:\n        a: b\n    annotations:\n        c: d\n",
	"kind: A # comment\nspec: # comment\n  scope: \"Namespaced\" # comment\n  # comment\n  group: 'g'\n",
	"kind: true\nspec:\n  state: yes\n  group: 1.5\n  scope: ~\n",
	"kind: 123\nmetadata:\n  name: 2020-01-01\n  annotations:\n    a: null\n    b: 0x1\n    no: x\n",
	"spec:\n  a:\n  - b: |\n      x\n    state: y\n  state: z\n",
	"spec:\n- state: a\n",
	"spec:\nstate: x\n",
	"spec:\n  \"st\\x61te\": b\n",
	"a: \"\nkind: b\"\n",
	"a: 'x\n  y'\nkind: b\n",
	"a: x\n  \"y\nkind: b\n",
	"a: x\n  - |\n   z\nkind: b\n",
	"a:\n  - |2\n   x\n  - >-\n   y\nkind: b\n",
	"a: [\nkind]\nkind: b\n",
	"a: {b: c}\nkind: d\n",
	"a: &x\n  kind: b\n<<: *x\n",
	"? kind\n: b\nkind: c\n",
	"kind\n: b\n",
	"kind : b\n",
	"kind: b\n c\n",
	"kind: b\n\n c\n",
	"kind: |\n  b\n",
	"  kind: a\nkind: b\n",
	"kind: a\n---\nkind: b\n",
	"... kind: a\nkind: b\n",
	"kind: a\n... b: c\nkind: d\n",
	"%YAML 1.1\n---\nkind: a\n",
	"--- {kind: a}\n",
	"--- # c\nkind: a\n",
	"\uFEFFkind: a\nspec:\n  state: b\n",
	"a: b\u2028kind: c\nkind: d\n",
	"a: b\u0085kind: c\n",
	"kind:\ta\n",
	"kind: a\r\nspec:\r\n  state: b\r\n",
	"kind: a\rspec: b\n",
	"!!str kind: a\n",
	"kind: !!str 1\n",
	"'kind': a\n\"spec\":\n  'state' : b\n",
	"metadata: {}\nspec: []\nkind: a\n",
	"metadata:\n  annotations:\n  - a\n  name: b\n",
	"metadata:\n  annotations:\n  name: b\n",
	"metadata:\n  annotations: {}\n  name: \"\"\n",
	"metadata:\n  annotations:\n    a: b\n   name: c\n",
	"- kind: a\nkind: b\n",
	"a:\n- b\n- - c: |\n      d\n  - e\nkind: f\n",
	"a: # |\n  b\nkind: c\n",
	"a: 'b'#c\nkind: d\n",
	"kind: a#b\n",
	"kind: a: b\n",
	"kind: \"a\\\nb\"\n",
	"a:\n  \"b\":\"c\nkind: d\"\n",
}
