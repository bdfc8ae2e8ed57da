package inventory

import (
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// PolicyAnnotation is the annotation with which an object requests a management policy.
const PolicyAnnotation = "headgate.dev/management-policy"

// A ManagementPolicy limits what Headgate may do to an object.
type ManagementPolicy string

// The management policies.
const (
	Default                ManagementPolicy = ""                       // no limit
	Undeletable            ManagementPolicy = "Undeletable"            // created and updated, but never deleted
	ObservableAndDeletable ManagementPolicy = "ObservableAndDeletable" // only observed, and deleted when it leaves the commit
	Observable             ManagementPolicy = "Observable"             // only observed
)

// Observes reports whether Headgate only observes the object while the commit declares it.
func (p ManagementPolicy) Observes() bool { return p == Observable || p == ObservableAndDeletable }

// NeedsProof reports whether an entry with this policy needs proof. Without it, anyone who can write the inventory
// could make Headgate delete an object that has no mark.
func (p ManagementPolicy) NeedsProof() bool { return p == ObservableAndDeletable }

// PolicyOf returns the management policy that an object of a commit requests.
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

// IsLeft reports whether the entry is a CRD that Crossplane created for an MRD of the sync that was deleted.
func (e Entry) IsLeft(id manifest.ID) bool {
	return id.IsCRD() && e.Definition && e.Policy == ObservableAndDeletable
}
