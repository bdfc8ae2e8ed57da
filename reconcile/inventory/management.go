package inventory

import (
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// PolicyAnnotation is the annotation by which an object asks for a management policy.
const PolicyAnnotation = "headgate.dev/management-policy"

// A ManagementPolicy limits what Headgate may do to an object.
type ManagementPolicy string

// The management policies.
const (
	Default                ManagementPolicy = ""                       // all
	Undeletable            ManagementPolicy = "Undeletable"            // it is made and updated, and never deleted
	ObservableAndDeletable ManagementPolicy = "ObservableAndDeletable" // it is looked at, and deleted when it leaves the commit
	Observable             ManagementPolicy = "Observable"             // it is looked at
)

// Observes reports whether Headgate only looks at the object.
func (p ManagementPolicy) Observes() bool { return p == Observable || p == ObservableAndDeletable }

// NeedsProof reports whether an entry of the policy needs proof: a writer of the inventory must not be able to have
// Headgate delete an object that bears no mark.
func (p ManagementPolicy) NeedsProof() bool { return p == ObservableAndDeletable }

// PolicyOf returns the management policy that an object of a commit asks for.
func PolicyOf(o render.Object) (ManagementPolicy, error) {
	policy := ManagementPolicy(o.Asks[PolicyAnnotation])
	if policy == "Default" {
		return Default, nil
	}
	if !slices.Contains([]ManagementPolicy{Default, Undeletable, ObservableAndDeletable, Observable}, policy) {
		return "", catalogue.Errorf(o.Origin, "%s: %s is %q, and must be Default, Undeletable, ObservableAndDeletable or Observable", o.ID, PolicyAnnotation, policy)
	}
	return policy, nil
}

// IsLeft reports whether the entry is a CRD that Crossplane made for an MRD of the sync that is gone.
func (e Entry) IsLeft(id manifest.ID) bool {
	return id.IsCRD() && e.Definition && e.Policy == ObservableAndDeletable
}
