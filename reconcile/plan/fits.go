package plan

import (
	"slices"

	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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

// Fits asks how many objects of a CRD, or of the CRDs of an XRD, would lose a value or be refused with a new version of the
// definition.
type Fits struct {
	question.By[Misfits]
	Of    manifest.ID
	After FullDefinition // the new version of the CRD, or of the MRD or XRD that makes it
}

// About implements question.Any.
func (q Fits) About() manifest.ID { return q.Of }

// Misfits is how many objects do not fit a definition.
type Misfits struct {
	Count   int64
	Reasons []reason.Reason // the values that objects would lose, and why they would be refused
}

// And returns the combined answer for two kinds.
func (m Misfits) And(other Misfits) Misfits {
	return Misfits{m.Count + other.Count, slices.Concat(m.Reasons, other.Reasons)}
}
