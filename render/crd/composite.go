package crd

import (
	"headgate.dev/headgate/render/crossplane"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xrdv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Composites returns the CRDs that Crossplane makes of an XRD, with Crossplane's own library: the CRD of composite resources, and the
// CRD of claims if the XRD has claims. It does not change xrd.
func Composites(xrd *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var v1 xrdv1.CompositeResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(xrd.Object, &v1); err != nil {
		return nil, err
	}
	if xrd.GetAPIVersion() != crossplane.XRDAPIVersionV1 {
		v1.Spec.Scope = or(v1.Spec.Scope, xrdv1.CompositeResourceScopeNamespaced)
	}
	v1.Spec.DefaultCompositionUpdatePolicy = or(v1.Spec.DefaultCompositionUpdatePolicy, xpv2.UpdateAutomatic)
	v1.Spec.DefaultCompositeDeletePolicy = or(v1.Spec.DefaultCompositeDeletePolicy, xpv2.CompositeDeleteBackground)
	makes := []func(*xrdv1.CompositeResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error){xcrd.ForCompositeResource}
	if v1.Spec.ClaimNames != nil {
		makes = append(makes, xcrd.ForCompositeResourceClaim)
	}
	var all []*unstructured.Unstructured
	for _, of := range makes {
		made, err := of(&v1)
		if err != nil {
			return nil, err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(made)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetAPIVersion(apiextensionsv1.SchemeGroupVersion.String())
		u.SetKind("CustomResourceDefinition")
		all = append(all, u)
	}
	return all, nil
}

// or returns a value, or the default of the XRD's own schema.
func or[V any](value *V, otherwise V) *V {
	if value == nil {
		return &otherwise
	}
	return value
}
