// Package manifest reads Kubernetes YAML and JSON into documents that remember where they came from. It decodes a body
// only on demand. Package catalogue interprets the documents.
package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Document is one YAML or JSON document of a commit. Its body stays undecoded until Decode, and even unread if its file contains
// nothing else.
type Document struct {
	Origin Origin
	Header Header // zero if the document is not a Kubernetes manifest

	body   body
	nodes  int     // as countNodes counts them; for a List, the nodes of its first item
	reader *Reader // nil if a tool built the document from several documents
}

// Decode reads and decodes the body. Every call makes a new object. It is safe for concurrent use if the files are.
func (d *Document) Decode() (*unstructured.Unstructured, error) {
	v, err := d.body.decode()
	return d.object(v, err)
}

// Recall is Decode for documents that every render decodes. With a Memo, it does not read the file again.
func (d *Document) Recall() (*unstructured.Unstructured, error) {
	v, err := d.body.recall()
	return d.object(v, err)
}

func (d *Document) object(v any, err error) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	m, err := mapping(v, d.Origin)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: m}, nil
}

// Value reads and decodes the body, which may be a mapping, a list, a scalar or null.
func (d *Document) Value() (any, error) { return d.body.decode() }

// Value12 is Value according to YAML 1.2, which kustomize uses: yes, no, on and off are text, also as keys. The API server uses
// YAML 1.1.
func (d *Document) Value12() (any, error) {
	v, err := d.body.decode() // strict, and within the limits
	if err != nil {
		return nil, err
	}
	node, _, err := d.body.tree()
	if err != nil || node == nil { // JSON that is not valid YAML
		return v, nil //nolint:nilerr // what JSON says is the same in both
	}
	var v12 any
	if err := node.Decode(&v12); err != nil {
		return v, nil //nolint:nilerr // a key that is no scalar; the other library reports it better
	}
	return withTextKeys(v12), nil
}

// withTextKeys returns a value whose mappings have text keys, as in JSON.
func withTextKeys(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			value[key] = withTextKeys(v)
		}
	case map[any]any:
		made := make(map[string]any, len(value))
		for key, v := range value {
			made[fmt.Sprint(key)] = withTextKeys(v)
		}
		return made
	case []any:
		for i, v := range value {
			value[i] = withTextKeys(v)
		}
	}
	return value
}

// An Object is a decoded document.
type Object struct {
	*unstructured.Unstructured
	Origin   Origin
	Document *Document // the document that it was read from; nil if it was built
}

// ID returns the identity of the object.
func (o Object) ID() ID { return IDOf(o.Unstructured) }
