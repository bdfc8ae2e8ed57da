// Package crd turns definitions into CustomResourceDefinitions, and back, exactly
// as Crossplane does.
package crd

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Of renders the CRD that Crossplane makes of an MRD, without owner references.
// mrd is not changed; the CRD shares its schemas.
func Of(mrd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	panic("to be written")
}

// Definition is the MRD that Crossplane's package manager makes of a CRD.
// crd is not changed; the MRD shares its schemas.
func Definition(crd *unstructured.Unstructured, safeStart bool) *unstructured.Unstructured {
	panic("to be written")
}
