package plan

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// A FullDefinition is a definition with its schemas. Two that are equal have the same content.
type FullDefinition interface {
	Content() (*unstructured.Unstructured, error)
}

// Decoded returns the FullDefinition of decoded content.
func Decoded(u *unstructured.Unstructured) FullDefinition { return (*loaded)(u) }

type loaded unstructured.Unstructured

func (a *loaded) Content() (*unstructured.Unstructured, error) {
	return (*unstructured.Unstructured)(a), nil
}

// Lazy returns a FullDefinition that is decoded when its content is read, and that equals no other one.
func Lazy(content func() (*unstructured.Unstructured, error)) FullDefinition { return &lazy{content} }

type lazy struct {
	content func() (*unstructured.Unstructured, error)
}

func (l *lazy) Content() (*unstructured.Unstructured, error) { return l.content() }

// AfterWhole returns the new version of a definition, with its schemas; nil if they are not available.
func (s Step) AfterWhole() FullDefinition {
	if s.Whole == nil && s.After != nil && !s.Lean {
		return Decoded(s.After)
	}
	return s.Whole
}
