// Package manifest reads Kubernetes YAML and JSON into documents that remember
// where they came from. It decodes a body only when somebody asks for it; what a
// document means is for package catalogue.
package manifest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Header is the little that can be known of a document without decoding it.
type Header struct {
	APIVersion  string
	Kind        string
	Namespace   string
	Name        string
	Annotations map[string]string // nil where there are none
	Spec        SpecHeader
}

// A SpecHeader holds what tells definitions (CRDs and MRDs) apart. A field is
// empty where the document has no such string.
type SpecHeader struct {
	Group  string // spec.group
	Kind   string // spec.names.kind
	Plural string // spec.names.plural
	Scope  string // spec.scope
	State  string // spec.state
}

// A Document is one YAML or JSON document of a commit. Its body stays undecoded,
// and where its file holds nothing else unread, until Decode.
type Document struct {
	Origin Origin
	Header Header

	body func() ([]byte, error)
}

// Decode reads and decodes the body. Every call makes a new object.
func (d *Document) Decode() (*unstructured.Unstructured, error) {
	panic("to be written")
}

// An Object is a decoded document.
type Object struct {
	*unstructured.Unstructured
	Origin Origin
}

// ID is the identity of the object.
func (o Object) ID() ID { return IDOf(o.Unstructured) }
