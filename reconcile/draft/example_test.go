package draft_test

import (
	"fmt"
	"testing/fstest"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/render"
)

// A plan has one step for each object, and the guards rule on every step. This Sync may apply only ConfigMaps, so a guard holds the
// namespace.
func ExampleCompute() {
	want, err := render.Render(render.Input{Files: fstest.MapFS{"app.yaml": {Data: []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
`)}}}, render.Options{})
	if err != nil {
		fmt.Println(err)
	}
	only := guard.Guarding{AllowedKinds: []guard.AllowedKind{{Kind: "ConfigMap", Namespaces: []string{"shop"}}}}
	p, err := given.Compute(want, given.Seen(facts.Upstream{}), only.Guards()...)
	for _, s := range p.Steps {
		fmt.Printf("%s %s, held by %q\n", s.Action, s.ID, s.Guard)
	}
	fmt.Println(err)
	// Output:
	// hold Namespace/shop, held by "allowed"
	// create ConfigMap/shop/settings, held by ""
	// <nil>
}
