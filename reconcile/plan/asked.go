package plan

import "headgate.dev/headgate/render/manifest"

// CRD returns the ID of the CRD with this name.
func CRD(name string) manifest.ID {
	return manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}
}
