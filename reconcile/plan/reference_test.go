package plan_test

import (
	"testing"

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
