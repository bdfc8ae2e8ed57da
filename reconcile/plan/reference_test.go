package plan_test

import (
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Readers of the inventory cannot guess values of a Secret with a digest, wherever the value was copied to.
func TestDigestOfACopy(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"pin": "1234"}}}
	o, err := render.NewObject(u, manifest.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	keyed := plan.Observed{Key: []byte("key")}
	if plain := (plan.Observed{}).Digest(o); keyed.Digest(o) != plain {
		t.Error("a public value is not keyed")
	}
	o.Secret = true
	if keyed.Digest(o) == (plan.Observed{}).Digest(o) {
		t.Error("the digest of a copy is not keyed")
	}
}

// A Sync may forbid that a commit copies from Secrets. Its author chooses where the value lands.
func TestReferencesToSecretsAreForbidden(t *testing.T) {
	u := given.ConfigMap("copy")
	u.Object["data"] = map[string]any{"key": "none"}
	u.SetAnnotations(map[string]string{"config.kubernetes.io/apply-time-mutation": "- sourceRef: {kind: Secret, name: source}\n  sourcePath: $.data.password\n  targetPath: $.data.key\n"})
	commit := render.Desired{Objects: []render.Object{given.Wanted(t, u)}}
	if _, err := (plan.Observed{}).Ask(commit); err != nil {
		t.Errorf("without the setting: %v", err)
	}
	seen := plan.Observed{Terms: plan.Terms{NoSecrets: true}}
	if _, err := seen.Ask(commit); err == nil || !strings.Contains(err.Error(), "references.fromSecrets") {
		t.Errorf("the commit is not refused: %v", err)
	}
	if ids := seen.SourcesOf(commit); len(ids) > 0 {
		t.Errorf("an observer would read %v", ids)
	}
}
