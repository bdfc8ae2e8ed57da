package diff_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"regexp"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func thingOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := yaml.Unmarshal([]byte("{apiVersion: v1, kind: Thing, metadata: {name: a}, "+text+"}"), &u.Object); err != nil {
		t.Fatal(err)
	}
	return &u
}

func TestWithhold(t *testing.T) {
	cases := map[string]struct {
		reason     string
		path       string
		sent, live string
		want       []string // without, ours, whole
	}{
		"Nothing": {
			"An object without ignored fields is sent completely.",
			"/spec/other", `spec: {a: 1}`, `spec: {a: 2}`,
			[]string{`spec: {a: 1}`},
		},
		"Leaf": {
			"A live value is omitted or sent unchanged.",
			"/spec/a", `spec: {a: 1, b: 1}`, `spec: {a: 2, b: 2}`,
			[]string{`spec: {b: 1}`, `spec: {a: 2, b: 1}`, `spec: {a: 2, b: 1}`},
		},
		"Absent": {
			"A removed field stays removed.",
			"/spec/a", `spec: {a: 1, b: 1}`, `spec: {b: 2}`,
			[]string{`spec: {b: 1}`, `spec: {b: 1}`, `spec: {b: 1}`},
		},
		"Mapping": {
			"Our own keys of a mapping are sent before other managers' keys.",
			"/spec/a", `spec: {a: {x: 1, y: 1}}`, `spec: {a: {x: 2, z: 3}}`,
			[]string{`spec: {}`, `spec: {a: {x: 2}}`, `spec: {a: {x: 2, z: 3}}`},
		},
		"NamedItem": {
			"A list item is identified by its name, at any position.",
			"/spec/l/0/v", `spec: {l: [{name: a, v: 1, w: 1}]}`, `spec: {l: [{name: b, v: 5}, {name: a, v: 2, w: 2}]}`,
			[]string{`spec: {l: [{name: a, w: 1}]}`, `spec: {l: [{name: a, v: 2, w: 1}]}`, `spec: {l: [{name: a, v: 2, w: 1}]}`},
		},
		"Item": {
			"A whole item is never omitted, because the following items would move.",
			"/spec/l/0", `spec: {l: [x, y]}`, `spec: {l: [z, z]}`,
			[]string{`spec: {l: [z, y]}`, `spec: {l: [z, y]}`, `spec: {l: [z, y]}`},
		},
		"Every": {
			"A star means every item or key.",
			"/spec/*/v", `spec: {a: {v: 1}, b: {v: 1, w: 1}}`, `spec: {a: {v: 2}, b: {v: 3}}`,
			[]string{`spec: {a: {}, b: {w: 1}}`, `spec: {a: {v: 2}, b: {v: 3, w: 1}}`, `spec: {a: {v: 2}, b: {v: 3, w: 1}}`},
		},
		"Escaped": {
			"A key may contain any character.",
			"/data/a~1b~0", `data: {"a/b~": x}`, `data: {"a/b~": y}`,
			[]string{`data: {}`, `data: {"a/b~": y}`, `data: {"a/b~": y}`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			terms := diff.Ignores{{Paths: []diff.Pointer{diff.PointerOf(tc.path)}}}
			sent, live := thingOf(t, tc.sent), thingOf(t, tc.live)
			ways := terms.Withhold(sent, live, given.Sync)
			var want []*unstructured.Unstructured
			for _, text := range tc.want {
				u := thingOf(t, text)
				if len(tc.want) > 1 {
					given.Sync.Own(u)
				}
				want = append(want, u)
			}
			if diff := cmp.Diff(want, ways); diff != "" {
				t.Errorf("%s\nWithhold(...) (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(thingOf(t, tc.sent), sent); diff != "" {
				t.Errorf("what was passed in was changed (-want +got):\n%s", diff)
			}
			if last := ways[len(ways)-1]; !terms.Leaves(sent, live, last) {
				t.Errorf("the last way leaves all as it is: %v", last)
			}
		})
	}
}

func TestSelects(t *testing.T) {
	rule := diff.Ignore{Kind: regexp.MustCompile("^(?:Deployment)$"), Namespace: regexp.MustCompile("^(?:team-.*)$")}
	for id, want := range map[manifest.ID]bool{
		{Group: "apps", Kind: "Deployment", Namespace: "team-a", Name: "x"}:  true,
		{Group: "apps", Kind: "Deployment", Namespace: "other", Name: "x"}:   false,
		{Group: "apps", Kind: "Deployments", Namespace: "team-a", Name: "x"}: false,
	} {
		if got := rule.Selects(id); got != want {
			t.Errorf("selects(%s) = %v", id, got)
		}
	}
}

func TestIgnoredInAComparison(t *testing.T) {
	before, after := given.ConfigMap("a"), given.ConfigMap("a")
	before.Object["data"] = map[string]any{"replicas": "1", "k": "v"}
	after.Object["data"] = map[string]any{"replicas": "2", "k": "w"}
	b := baseline.Baseline{
		Base: render.Desired{Objects: []render.Object{given.Wanted(t, before)}}, Sync: given.Sync,
		Terms: facts.Terms{Ignore: []diff.Ignore{{Paths: []diff.Pointer{diff.PointerOf("/data/replicas")}}}},
	}
	head := render.Desired{Objects: []render.Object{given.Wanted(t, after)}}
	seen, err := b.Observe(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	p, err := draft.Compute(seen)
	if err != nil {
		t.Fatal(err)
	}
	want := []diff.Change{{Path: "data.k", From: `"v"`, To: `"w"`}}
	if diff := cmp.Diff(want, p.Steps[0].Changes()); diff != "" {
		t.Errorf("A reviewer reads what a pass would do, and it writes no ignored field.\nChanges() (-want +got):\n%s", diff)
	}
}

// stringData is compared and ignored as the data that is stored.
func TestIgnoredStringData(t *testing.T) {
	secret := func(field string, data map[string]any) *unstructured.Unstructured {
		return given.Thing("v1", "Secret", "a", field, data)
	}
	b := baseline.Baseline{
		Base: render.Desired{Objects: []render.Object{given.Wanted(t, secret("data", map[string]any{"same": "eA==", "rotated": "eA==", "gone": "eA=="}))}}, Sync: given.Sync,
		Terms: facts.Terms{Ignore: []diff.Ignore{{Paths: []diff.Pointer{diff.PointerOf("/stringData/rotated")}}}},
	}
	seen, err := b.Observe(t.Context(), render.Desired{Objects: []render.Object{given.Wanted(t, secret("stringData", map[string]any{"same": "x", "rotated": "y"}))}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := draft.Compute(seen)
	if err != nil {
		t.Fatal(err)
	}
	want := []diff.Change{{Path: "data.gone", From: "*** (before)"}}
	if diff := cmp.Diff(want, p.Steps[0].Changes()); diff != "" {
		t.Errorf("Changes() (-want +got):\n%s", diff)
	}
	live := secret("data", map[string]any{"same": "eA==", "rotated": "eA=="})
	if got := diff.Compare(secret("stringData", map[string]any{"same": "x", "rotated": "y"}), live, b.Terms.Ignore); got.After != nil {
		t.Errorf("Compare(...) = %v", got.After)
	}
}

func TestInjectedCA(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	webhook := func() map[string]any {
		return map[string]any{"name": "a.example.org", "clientConfig": map[string]any{"url": "https://a", "caBundle": ca}}
	}
	for key, left := range map[string]bool{
		"cert-manager.io/inject-ca-from":            true,
		"cert-manager.io/inject-ca-from-secret":     true,
		"cert-manager.io/inject-apiserver-ca":       true,
		"service.beta.openshift.io/inject-cabundle": true,
		"example.org/other":                         false,
	} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
			"metadata": map[string]any{"name": "a", "annotations": map[string]any{key: "x"}},
			"webhooks": []any{webhook(), webhook()},
		}}
		sent, err := demand.Sent(given.Sync, given.Wanted(t, u))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if _, has := diff.PointerOf(fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i)).Of(sent.Object); has == left {
				t.Errorf("%s: a CA is not sent where something else puts one, and else it is: %v", key, sent.Object["webhooks"])
			}
		}
	}
}
