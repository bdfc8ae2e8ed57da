package crossplane

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The labels that Crossplane sets.
const (
	InUseLabel       = "crossplane.io/in-use"           // "true" on an object that a Usage protects
	CompositeLabel   = "crossplane.io/composite"        // on a composed object: the composite resource
	CompositionLabel = "crossplane.io/composition-name" // on a CompositionRevision: its Composition
	RevisionLabel    = Packages + "/revision"           // on the objects of a package
	PackageLabel     = Packages + "/package"            // on a package revision
)

// FieldManagers are the field managers of Crossplane for objects that it applies itself.
var FieldManagers = []string{Extensions + "/managed", Extensions + "/managed-protection", Packages + "/runtime"}

// Finalizers are the finalizers with which Crossplane and its providers clean up after a managed resource, a composite
// resource or a claim.
var Finalizers = []string{"finalizer.managedresource.crossplane.io", "composite." + Extensions, "finalizer." + Extensions}

// ExternalName is the annotation of a managed resource with the name of the cloud resource that it manages.
const ExternalName = Domain + "/external-name"

// HasFinalizer reports whether a controller of Crossplane cleans up after an object.
func HasFinalizer(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetFinalizers(), func(f string) bool { return slices.Contains(Finalizers, f) })
}

// IsFinalizer reports whether a finalizer belongs to Crossplane or a provider.
func IsFinalizer(name string) bool { return strings.HasSuffix(name, ".crossplane.io") }

// IsInUse reports whether an object has the label of objects that a Usage protects.
func IsInUse(o metav1.Object) bool { return o.GetLabels()[InUseLabel] == "true" }

// OwnerOf describes the Crossplane object that owns an object, and may recreate or delete it. It returns "" if there is none.
func OwnerOf(o metav1.Object) string {
	for _, ref := range o.GetOwnerReferences() {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		composed := o.GetLabels()[CompositeLabel] != "" && ref.Controller != nil && *ref.Controller
		if composed || group == Packages || group == Extensions {
			return fmt.Sprintf("Crossplane (%s %s)", ref.Kind, ref.Name)
		}
	}
	return ""
}
