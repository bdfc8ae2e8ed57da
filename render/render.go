// Package render turns the bytes of one commit into the objects that it wants in
// a cluster. It is pure: the same input renders to the same output, anywhere.
//
//	Input ─Read─► Catalogue ─Decide─► Decisions ─Render─► Desired
package render

import (
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Owner says who makes the CRDs of definitions.
type Owner string

// The owners. OwnerCrossplane comes with the checks on what Crossplane makes.
const (
	OwnerHeadgate   Owner = "Headgate"
	OwnerCrossplane Owner = "Crossplane"
)

// Options say how to render; the zero value is what a user gets who sets nothing.
type Options struct {
	Owner      Owner // "" is Headgate
	Conversion Conversion
	Limits     manifest.Limits
}

// A Desired is what a commit wants a cluster to hold.
type Desired struct {
	Revision    string
	Owner       Owner
	Objects     []Object            // to be applied, sorted by identity; CRDs of active definitions included
	Definitions []Definition        // every definition of the commit, by name
	Policies    []catalogue.Policy  // by name
	Packages    []catalogue.Package // by origin
	Skipped     catalogue.Skipped   // what was read and is not applied, counted by reason
	Findings    []manifest.Finding  // sorted
}

// A Definition is a definition of the commit with the decision on it.
type Definition struct {
	activation.Decision
}

// CRD is the CRD that the definition makes, active or not. It decodes the document.
func (d Definition) CRD() (Object, error) { panic("to be written") }

// NewObject is an object that was read at an origin.
func NewObject(u *unstructured.Unstructured, origin manifest.Origin) (Object, error) {
	panic("to be written")
}

// Render renders a commit.
func Render(in Input, how Options) (Desired, error) { panic("to be written") }

// An Object is one object that the commit wants, unmarked: plan adds our label
// and annotation.
type Object struct {
	ID         manifest.ID
	APIVersion string
	Origin     manifest.Origin
	Digest     string           // of the content: equal digests mean equal objects
	Definition string           // the name of the definition that this CRD is made of; "" for everything else
	Serves     schema.GroupKind // of a CRD: the kind that it serves
	Optional   bool             // applied only where its API is served

	content func() (*unstructured.Unstructured, error)
}

// Content decodes the object. The caller must not change it: calls may share it.
func (o Object) Content() (*unstructured.Unstructured, error) { return o.content() }
