// Package manifest reads Kubernetes YAML and JSON into documents that remember
// where they came from. It decodes a body only when somebody asks for it; what a
// document means is for package catalogue.
package manifest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Document is one YAML or JSON document of a commit. Its body stays undecoded,
// and where its file holds nothing else unread, until Decode.
type Document struct {
	Origin Origin
	Header Header // zero where this is no Kubernetes manifest

	body body
}

// Decode reads and decodes the body. Every call makes a new object. Safe for
// concurrent use if the files are.
func (d *Document) Decode() (*unstructured.Unstructured, error) {
	v, err := d.body.decode()
	if err != nil {
		return nil, err
	}
	m, err := mapping(v, d.Origin)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: m}, nil
}

// An Object is a decoded document.
type Object struct {
	*unstructured.Unstructured
	Origin Origin
}

// ID is the identity of the object.
func (o Object) ID() ID { return IDOf(o.Unstructured) }
