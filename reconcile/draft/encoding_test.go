package draft_test

import (
	"cmp"
	"errors"
	"maps"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/jsonpath"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"
)

// kindsOfReferences returns the kinds in the tests of references.
func kindsOfReferences() map[schema.GroupKind]plan.Kind {
	kinds := maps.Clone(given.Kinds)
	kinds[schema.GroupKind{Kind: "Secret"}] = plan.Kind{Version: "v1", Resource: "secrets", Namespaced: true}
	kinds[schema.GroupKind{Group: "example.org", Kind: "Bucket"}] = plan.Kind{Version: "v1", Resource: "buckets", Namespaced: true}
	return kinds
}

// A base64 value of the source is copied as text, unless the target's API also holds bytes.
func TestCopiedBytes(t *testing.T) {
	const plain, encoded = "hunter2", "aHVudGVyMg=="
	data := map[string]any{"password": encoded, "more": "eA==", "none": "", "binary": "/wA="}
	secret := given.Thing("v1", "Secret", "source", "data", data)
	config := given.Thing("v1", "ConfigMap", "source", "binaryData", data)
	config.Object["data"] = map[string]any{"text": encoded, "caBundle": encoded}
	crd := given.Thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "source", "spec", map[string]any{"webhook": map[string]any{"caBundle": encoded}})
	nested := func(kind, field string) *unstructured.Unstructured {
		return given.Thing("example.org/v1", "Bucket", "copy", "spec", map[string]any{"manifests": []any{map[string]any{"apiVersion": "v1", "kind": kind, field: map[string]any{"k": ""}}}})
	}
	cases := map[string]struct {
		reason   string
		source   *unstructured.Unstructured
		from     string
		target   *unstructured.Unstructured
		to       string
		token    string
		sent     string // where the value is sent, if not where the reference puts it
		want     any
		problem  string
		noSecret bool
	}{
		"Text":           {reason: "The target needs the password, not its base64 form.", source: secret, from: "$.data.password", target: given.Thing("v1", "ConfigMap", "copy", "data", map[string]any{"k": ""}), to: "$.data.k", want: plain},
		"Token":          {reason: "A token inside a text is replaced with the password, too.", source: secret, from: "$.data.password", target: given.Thing("v1", "ConfigMap", "copy", "data", map[string]any{"k": "db://u:${p}@h/${p}"}), to: "$.data.k", token: "${p}", want: "db://u:hunter2@h/hunter2"},
		"CustomResource": {reason: "In a custom resource, the target also needs the password.", source: secret, from: "$.data.password", target: given.Thing("example.org/v1", "Bucket", "copy", "data", map[string]any{"k": ""}), to: "$.data.k", want: plain},
		"Empty":          {reason: "An empty value can be copied.", source: secret, from: "$.data.none", target: given.Thing("v1", "ConfigMap", "copy", "data", map[string]any{"k": "x"}), to: "$.data.k", want: ""},
		"Data":           {reason: "data of a Secret holds base64.", source: secret, from: "$.data.password", target: given.Thing("v1", "Secret", "copy", "data", map[string]any{"k": ""}), to: "$.data.k", want: encoded},
		"DataToken":      {reason: "A token in data of a Secret is replaced with base64.", source: secret, from: "$.data.password", target: given.Thing("v1", "Secret", "copy", "data", map[string]any{"k": "${p}"}), to: "$.data.k", token: "${p}", want: encoded},
		"AllData":        {reason: "A whole mapping can be copied into data of a Secret.", source: secret, from: "$.data", target: given.Thing("v1", "Secret", "copy", "data", map[string]any{"k": ""}), to: "$.data", want: data},
		"StringData":     {reason: "stringData of a Secret holds text, which is sent as data.", source: secret, from: "$.data.password", target: given.Thing("v1", "Secret", "copy", "stringData", map[string]any{"k": ""}), to: "$.stringData.k", sent: "$.data.k", want: encoded},
		"BinaryData":     {reason: "binaryData of a ConfigMap holds base64.", source: secret, from: "$.data.binary", target: given.Thing("v1", "ConfigMap", "copy", "binaryData", map[string]any{"k": ""}), to: "$.binaryData.k", want: "/wA="},
		"Nested":         {reason: "A Secret nested in another object is treated like a Secret.", source: secret, from: "$.data.binary", target: nested("Secret", "data"), to: "$.spec.manifests[0].data.k", want: "/wA="},
		"NestedText":     {reason: "stringData of a nested Secret holds text.", source: secret, from: "$.data.password", target: nested("Secret", "stringData"), to: "$.spec.manifests[0].stringData.k", want: plain},
		"NestedConfig":   {reason: "A nested ConfigMap is treated like a ConfigMap.", source: secret, from: "$.data.password", target: nested("ConfigMap", "data"), to: "$.spec.manifests[0].data.k", want: plain},
		"CABundle":       {reason: "In every kind of the Kubernetes API, a caBundle holds bytes.", source: secret, from: "$.data.password", target: given.Thing("example.org/v1", "Bucket", "copy", "spec", map[string]any{"caBundle": ""}), to: "$.spec.caBundle", want: encoded},
		"NoBundle":       {reason: "A ConfigMap key named caBundle holds text.", source: secret, from: "$.data.password", target: given.Thing("v1", "ConfigMap", "copy", "data", map[string]any{"caBundle": ""}), to: "$.data.caBundle", want: plain},
		"AllText":        {reason: "Each value of a mapping is text.", source: config, from: "$.data", target: given.Thing("example.org/v1", "Bucket", "copy", "spec", ""), to: "$.spec", want: config.Object["data"], noSecret: true},
		"FromBinaryData": {reason: "binaryData of a ConfigMap is base64, like data of a Secret.", source: config, from: "$.binaryData.password", target: given.Thing("v1", "ConfigMap", "copy", "data", map[string]any{"k": ""}), to: "$.data.k", want: plain, noSecret: true},
		"FromCABundle":   {reason: "A caBundle is base64, like data of a Secret.", source: crd, from: "$.spec.webhook.caBundle", target: given.Thing("v1", "ConfigMap", "copy", "data", map[string]any{"k": ""}), to: "$.data.k", want: plain, noSecret: true},
		"FromText":       {reason: "A text is copied unchanged, even if it looks like base64.", source: config, from: "$.data.text", target: given.Thing("v1", "ConfigMap", "copy", "data", map[string]any{"k": ""}), to: "$.data.k", want: encoded, noSecret: true},
		"FromBundleKey":  {reason: "A ConfigMap key named caBundle holds text.", source: config, from: "$.data.caBundle", target: given.Thing("v1", "ConfigMap", "copy", "data", map[string]any{"k": ""}), to: "$.data.k", want: encoded, noSecret: true},
		"FromName":       {reason: "Metadata of a Secret is not base64.", source: given.Thing("v1", "Secret", "c291cmNl", "type", "Opaque"), from: "$.metadata.name", target: given.Thing("v1", "ConfigMap", "copy", "data", map[string]any{"k": ""}), to: "$.data.k", want: "c291cmNl"},
		"Binary":         {reason: "Binary data cannot be copied as text.", source: secret, from: "$.data.binary", target: given.Thing("v1", "ConfigMap", "copy", "data", map[string]any{"k": ""}), to: "$.data.k", problem: "the field $.data.binary of the Secret default/source cannot be copied to $.data.k: it is not text; copy it to data of a Secret"},
		"BinaryOfAll":    {reason: "Binary data among other values cannot be copied as text either.", source: secret, from: "$.data", target: given.Thing("example.org/v1", "Bucket", "copy", "spec", ""), to: "$.spec", problem: "cannot be copied to $.spec: binary: it is not text"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			source := manifest.IDOf(tc.source)
			if source.IsCRD() {
				tc.source.SetNamespace("")
				source = manifest.IDOf(tc.source)
			}
			ref := "- sourceRef: {group: '" + source.Group + "', kind: " + source.Kind + ", name: " + source.Name + "}\n" +
				"  sourcePath: " + tc.from + "\n  targetPath: " + tc.to + "\n  token: '" + tc.token + "'\n"
			tc.target.SetAnnotations(map[string]string{mutation.Annotation: ref})
			beside := given.Wanted(t, given.ConfigMap("beside"))
			o := given.Wanted(t, tc.target)
			o.Asks = tc.target.GetAnnotations()
			seen := facts.Observed{
				Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}, Kinds: kindsOfReferences(), Space: "default"},
				Live: facts.Live{
					Objects: map[manifest.ID]*metav1.PartialObjectMetadata{},
					Sources: map[manifest.ID]facts.ReferenceSource{source: {Live: tc.source}},
				},
				Answers: question.Answers{question.Ready{Of: source}: question.Readiness{Exists: true}},
			}
			p, err := given.Compute(render.Desired{Objects: []render.Object{beside, o}}, seen, guard.Guarding{}.Guards()...)
			if err != nil {
				t.Fatalf("%s\nTrouble with one object is no error of the pass: %v", tc.reason, err)
			}
			for _, s := range p.Steps {
				if s.ID.Name == "beside" {
					if s.Err != nil || !s.Writes() {
						t.Errorf("%s\nwhat is beside it: %s %v", tc.reason, s.Action, s.Err)
					}
					continue
				}
				if tc.problem != "" {
					if s.Err == nil || !strings.Contains(words.OfError(s.Err), tc.problem) {
						t.Errorf("%s\n%s %v, want an error with %q", tc.reason, s.Action, s.Err, tc.problem)
					}
					continue
				}
				if s.Err != nil || s.Waiting() {
					t.Fatalf("%s\n%v, waits for %q", tc.reason, s.Err, s.Waits)
				}
				sent, err := s.Object()
				if err != nil {
					t.Fatal(err)
				}
				at, err := jsonpath.One(sent.Object, cmp.Or(tc.sent, tc.to))
				if err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(tc.want, jsonpath.Get(sent.Object, at)); diff != "" {
					t.Errorf("%s\nsent (-want +got):\n%s", tc.reason, diff)
				}
				output := "got " + plain + ", or " + encoded
				if masked := s.Mask().Err(errors.New(output)).Error(); strings.Contains(tc.from, "password") && !tc.noSecret && masked != "got ***, or ***" {
					t.Errorf("%s\n%q is reported for the step as %q", tc.reason, output, masked)
				}
				if quoted := facts.MaskOf(sent).Err(errors.New(output)).Error(); tc.token == "" && strings.Contains(tc.from, "password") && !tc.noSecret && quoted != "got ***, or ***" {
					t.Errorf("%s\n%q is reported for the request as %q", tc.reason, output, quoted)
				}
			}
		})
	}
}

// A short value that is also valid base64 must not be masked as bytes.
func TestMaskedBytes(t *testing.T) {
	secret := given.Thing("v1", "Secret", "a", "stringData", map[string]any{"a": "aaaa"})
	if got := facts.MaskOf(secret).Err(errors.New("got aaaa")).Error(); got != "got ***" {
		t.Errorf("it says %q", got)
	}
}
