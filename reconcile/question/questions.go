package question

import (
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Dependents asks how many live objects are deleted with an object or break without it: custom resources of a CRD, usages of a
// ProviderConfig, and so on.
type Dependents struct {
	By[Counted]
	Of manifest.ID
}

// Inside asks how many objects in a namespace do not belong to this sync.
type Inside struct {
	By[Counted]
	Of manifest.ID
}

// Protectors asks how many of Crossplane's Usages name an object.
type Protectors struct {
	By[Counted]
	Of manifest.ID
}

// Controls asks how many CRDs and MRDs of a package have a controller that is not the active revision of the package.
type Controls struct {
	By[Counted]
	Of manifest.ID
}

// Counted is how many objects were found.
type Counted struct {
	Count   int64
	Example string        // one of the objects, for people: "Bucket team-a/logs"
	These   []manifest.ID // the objects that are known by name, which may not be all
}

// Present asks whether an object exists.
type Present struct {
	By[bool]
	Of manifest.ID
}

// Stored asks in which versions objects of a CRD are stored.
type Stored struct {
	By[[]string]
	Of manifest.ID
}

// Departs asks what the deletion of an MRD does to its CRD.
type Departs struct {
	By[Departure]
	Of manifest.ID
}

// A Departure is what the deletion of an MRD does to its CRD.
type Departure struct {
	Takes       bool      // it deletes the CRD
	Owns        bool      // the MRD is an owner of the CRD
	UID         types.UID // of the CRD, if Crossplane made it and it may stay
	Established string    // the reason of the MRD's condition Established
}

// Leftovers asks what an object would be without the leftovers of the tools that applied it before.
type Leftovers struct {
	By[Cleared]
	Of manifest.ID
}

// Cleared is the current object, and the object without leftovers. Both are nil if there is nothing to remove.
type Cleared struct{ Live, After *unstructured.Unstructured }

// AppliedBefore asks what the last applied commit set in an object. The answer is the object after an apply of that commit.
type AppliedBefore struct {
	By[*unstructured.Unstructured]
	Of manifest.ID
}

// Applied asks what an object would be after an apply.
type Applied struct {
	By[*unstructured.Unstructured]
	Of      manifest.ID
	Content Content
}

// Fits asks how many objects of a CRD, or of the CRDs of an XRD, would lose a value or be refused with a new version of the
// definition.
type Fits struct {
	By[Misfits]
	Of    manifest.ID
	After Content // the new version of the CRD, or of the MRD or XRD that makes it
}

// Misfits is how many objects do not fit a definition.
type Misfits struct {
	Count   int64
	Reasons []reason.Reason // the values that objects would lose, and why they would be refused
}

// And returns the combined answer for two kinds.
func (m Misfits) And(other Misfits) Misfits {
	return Misfits{m.Count + other.Count, slices.Concat(m.Reasons, other.Reasons)}
}

// Ready asks whether an object is ready for the objects that depend on it.
type Ready struct {
	By[Readiness]
	Of manifest.ID
}

// Readiness is the state of an object on which others depend.
type Readiness struct {
	Exists   bool
	NotReady reason.Reason // why it is not ready; no reason if it is
}

// Approvals asks for the approvals on the pull requests of a commit. It is about no object.
type Approvals struct {
	By[approval.Given]
	Revision string
}

// A Content is what can be decoded as an object.
type Content interface {
	Content() (*unstructured.Unstructured, error)
}

// About implements Any.
func (q Dependents) About() manifest.ID { return q.Of }

// About implements Any.
func (q Inside) About() manifest.ID { return q.Of }

// About implements Any.
func (q Protectors) About() manifest.ID { return q.Of }

// About implements Any.
func (q Controls) About() manifest.ID { return q.Of }

// About implements Any.
func (q Present) About() manifest.ID { return q.Of }

// About implements Any.
func (q Stored) About() manifest.ID { return q.Of }

// About implements Any.
func (q Departs) About() manifest.ID { return q.Of }

// About implements Any.
func (q Leftovers) About() manifest.ID { return q.Of }

// About implements Any.
func (q AppliedBefore) About() manifest.ID { return q.Of }

// About implements Any.
func (q Applied) About() manifest.ID { return q.Of }

// About implements Any.
func (q Fits) About() manifest.ID { return q.Of }

// About implements Any.
func (q Ready) About() manifest.ID { return q.Of }

// About implements Any.
func (q Approvals) About() (none manifest.ID) { return none }
