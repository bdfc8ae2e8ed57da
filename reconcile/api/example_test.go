package api_test

import (
	"fmt"

	"headgate.dev/headgate/reconcile/api"
)

func ExampleDecode() {
	syncs, err := api.Decode([]byte(`
apiVersion: headgate.dev/v1alpha1
kind: Sync
metadata: {name: platform}
spec:
  source: {repo: https://git.example.org/platform.git, path: clusters/prod}
`))
	fmt.Println(syncs[0].Namespace, syncs[0].Name, syncs[0].Spec.Source.Path, err)

	_, err = api.Decode([]byte(`
apiVersion: headgate.dev/v1alpha1
kind: Sync
metadata: {name: platform}
spec:
  source: {repo: https://git.example.org/platform.git}
  intervall: 5m
`))
	fmt.Println(err)
	// Output:
	// headgate-system platform clusters/prod <nil>
	// line 7: spec.intervall: is not a field of a Sync; write interval
}
