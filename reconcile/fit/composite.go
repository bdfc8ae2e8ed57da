package fit

import (
	"headgate.dev/headgate/render/crd"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// compositeOf returns the CRD that Crossplane will make of a changed XRD in place of a live one, for composite resources or for claims. If
// the XRD has no claims any more, Crossplane does not change their CRD.
func compositeOf(live, xrd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	made, err := crd.Composites(xrd)
	if err != nil {
		return nil, err
	}
	for _, one := range made {
		if one.GetName() == live.GetName() {
			return one, nil
		}
	}
	return live, nil
}
