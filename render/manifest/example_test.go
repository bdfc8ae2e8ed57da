package manifest_test

import (
	"fmt"
	"testing/fstest"

	"headgate.dev/headgate/render/manifest"
)

// A document knows its identity and its place before anything decodes its body. A field knows its line.
func ExampleRead() {
	files := fstest.MapFS{"app.yaml": {Data: []byte(`apiVersion: v1
kind: Namespace
metadata:
  name: shop
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: shop
data:
  colour: red
`)}}
	documents, err := manifest.Read(files, "app.yaml", manifest.Limits{})
	for _, d := range documents {
		fmt.Println(d.Origin, d.Header.ID())
	}
	fmt.Println(documents[1].OriginOf("data", "colour"), err)
	// Output:
	// app.yaml:1 Namespace/shop
	// app.yaml:6 ConfigMap/shop/settings
	// app.yaml:12 <nil>
}
