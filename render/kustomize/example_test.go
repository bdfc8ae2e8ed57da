package kustomize_test

import (
	"fmt"
	"testing/fstest"

	"headgate.dev/headgate/render/kustomize"
	"headgate.dev/headgate/render/manifest"
)

// An object of a build comes from the file that declares it, not from the kustomization.
func ExampleDirectories() {
	files := fstest.MapFS{
		"kustomization.yaml": {Data: []byte("namespace: shop\nresources: [settings.yaml]\n")},
		"settings.yaml":      {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n")},
	}
	built, errs := kustomize.Directories(files, manifest.NewReader(files, manifest.Limits{}, nil), []string{"."})
	for _, d := range built.Documents {
		fmt.Println(d.Origin, d.Header.ID())
	}
	fmt.Println(len(errs), "errors")
	// Output:
	// settings.yaml:1 ConfigMap/shop/settings
	// 0 errors
}
