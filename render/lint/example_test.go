package lint_test

import (
	"fmt"
	"testing/fstest"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/lint"
)

// Checked needs no cluster: it knows the kinds of the commit, of Kubernetes and of Crossplane.
func ExampleChecked() {
	files := fstest.MapFS{"app.yaml": {Data: []byte(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replica: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers: [{name: web, image: registry.example.org/web}]
`)}}
	want, err := render.Render(render.Input{Files: files}, render.Options{})
	if err != nil {
		fmt.Println(err)
	}
	for _, f := range lint.Checked(want, lint.Everything).Findings {
		fmt.Printf("%s: %s: %s\n", f.Origin, f.Severity, f.Message)
	}
	// Output:
	// app.yaml:7: warning: Deployment.apps/shop/web: spec.replica: Kubernetes 1.37 has no such field; did you mean replicas?
}
