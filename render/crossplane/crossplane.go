// Package crossplane is what Headgate knows about the API of Crossplane v2: groups, kinds, versions, names of labels, annotations,
// finalizers and field managers, what its package manager installs in which release, and its naming rules. No other package
// contains these literals.
package crossplane

import (
	"strings"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The API groups.
const (
	Extensions = "apiextensions.crossplane.io"
	Packages   = "pkg.crossplane.io"
	Metadata   = "meta.pkg.crossplane.io" // the group of a package's crossplane.yaml; no API server serves it
	Operations = "ops.crossplane.io"
	Protection = "protection.crossplane.io"
	Composing  = "pt.fn.crossplane.io"   // the group of the input of patch and transform
	Secrets    = "secrets.crossplane.io" // only of Crossplane v1
)

// Domain is what Crossplane's own groups, labels and annotations end in or begin with.
const Domain = "crossplane.io"

// The kinds of packages: those of the package metadata and of the objects that install packages.
const (
	Provider      = "Provider"
	Configuration = "Configuration"
	Function      = "Function"
)

// PullAlways is the packagePullPolicy with which Crossplane resolves an image every minute.
const PullAlways = "Always"

// The kinds that Headgate treats specially.
var (
	KindMRD                 = schema.GroupKind{Group: Extensions, Kind: "ManagedResourceDefinition"}
	KindMRAP                = schema.GroupKind{Group: Extensions, Kind: "ManagedResourceActivationPolicy"}
	KindXRD                 = schema.GroupKind{Group: Extensions, Kind: "CompositeResourceDefinition"}
	KindComposition         = schema.GroupKind{Group: Extensions, Kind: "Composition"}
	KindCompositionRevision = schema.GroupKind{Group: Extensions, Kind: "CompositionRevision"}

	KindProvider         = schema.GroupKind{Group: Packages, Kind: Provider}
	KindConfiguration    = schema.GroupKind{Group: Packages, Kind: Configuration}
	KindFunction         = schema.GroupKind{Group: Packages, Kind: Function}
	KindProviderRevision = schema.GroupKind{Group: Packages, Kind: "ProviderRevision"}
	KindRuntimeConfig    = schema.GroupKind{Group: Packages, Kind: "DeploymentRuntimeConfig"}
	KindImageConfig      = schema.GroupKind{Group: Packages, Kind: "ImageConfig"}
	KindLock             = schema.GroupKind{Group: Packages, Kind: "Lock"}

	KindClusterUsage = schema.GroupKind{Group: Protection, Kind: "ClusterUsage"}

	KindOperation      = schema.GroupKind{Group: Operations, Kind: "Operation"}
	KindCronOperation  = schema.GroupKind{Group: Operations, Kind: "CronOperation"}
	KindWatchOperation = schema.GroupKind{Group: Operations, Kind: "WatchOperation"}
)

// The versions that Headgate reads or writes.
const (
	MRDVersion         = "v1alpha1" // also of policies and operations
	MRDAPIVersion      = Extensions + "/" + MRDVersion
	XRDAPIVersionV1    = Extensions + "/v1" // of Crossplane v1: a composite resource is cluster-scoped unless its XRD sets the scope
	RevisionAPIVersion = Packages + "/v1"
)

// MRDVersions returns the versions of definitions and policies that Headgate reads. Their fields are the same, and Headgate writes an object in a
// version that the cluster serves.
func MRDVersions() []string { return []string{MRDVersion, "v1beta1"} }

// The resources that Headgate reads without discovery.
var (
	Locks        = schema.GroupVersionResource{Group: Packages, Version: "v1beta1", Resource: "locks"}
	ImageConfigs = schema.GroupVersionResource{Group: Packages, Version: "v1beta1", Resource: "imageconfigs"}
)

// MRDs is the name of the CRD that serves definitions.
const MRDs = "managedresourcedefinitions." + Extensions

// PausedAnnotation is the annotation of an object that Crossplane does not reconcile while it is "true".
const PausedAnnotation = manifest.PausedAnnotation

// MRD returns the identity of the ManagedResourceDefinition with this name.
func MRD(name string) manifest.ID { return idOf(KindMRD, name) }

// MRAP returns the identity of the ManagedResourceActivationPolicy with this name.
func MRAP(name string) manifest.ID { return idOf(KindMRAP, name) }

// XRD returns the identity of the CompositeResourceDefinition with this name.
func XRD(name string) manifest.ID { return idOf(KindXRD, name) }

// PackageKinds returns the kinds of objects that make Crossplane install a package.
func PackageKinds() []schema.GroupKind {
	return []schema.GroupKind{KindProvider, KindConfiguration, KindFunction}
}

// Revision returns the identity of a revision of a kind of package.
func Revision(packageKind, name string) manifest.ID { return idOf(RevisionKind(packageKind), name) }

// RevisionKind returns the kind of the revisions of a kind of package.
func RevisionKind(packageKind string) schema.GroupKind {
	return schema.GroupKind{Group: Packages, Kind: packageKind + "Revision"}
}

// ProviderRevision returns the identity of the ProviderRevision with this name.
func ProviderRevision(name string) manifest.ID { return idOf(KindProviderRevision, name) }

func idOf(gk schema.GroupKind, name string) manifest.ID {
	return manifest.ID{Group: gk.Group, Kind: gk.Kind, Name: name}
}

func isOf(id manifest.ID, gk schema.GroupKind) bool {
	return id.Group == gk.Group && id.Kind == gk.Kind
}

// IsMRD reports whether id names a ManagedResourceDefinition.
func IsMRD(id manifest.ID) bool { return isOf(id, KindMRD) }

// IsMRAP reports whether id names a ManagedResourceActivationPolicy.
func IsMRAP(id manifest.ID) bool { return isOf(id, KindMRAP) }

// IsXRD reports whether id names a CompositeResourceDefinition.
func IsXRD(id manifest.ID) bool { return isOf(id, KindXRD) }

// DeclaresKind reports whether an object makes the API server serve a kind.
func DeclaresKind(id manifest.ID) bool { return id.IsCRD() || IsMRD(id) || IsXRD(id) }

// IsComposition reports whether id names a Composition.
func IsComposition(id manifest.ID) bool { return isOf(id, KindComposition) }

// IsPackage reports whether an object makes Crossplane install a package.
func IsPackage(id manifest.ID) bool { return Installs(id.Group, id.Kind) }

// IsImageConfig reports whether id names an ImageConfig.
func IsImageConfig(id manifest.ID) bool { return isOf(id, KindImageConfig) }

// ConfiguresRuntime reports whether id names a DeploymentRuntimeConfig, which configures the pods of packages.
func ConfiguresRuntime(id manifest.ID) bool { return isOf(id, KindRuntimeConfig) }

// IsRevisionOrLock reports whether id names an object that Crossplane derives from packages: a package revision, or the lock with
// all packages.
func IsRevisionOrLock(id manifest.ID) bool {
	kind, _ := strings.CutSuffix(id.Kind, "Revision")
	return isOf(id, KindLock) || kind != id.Kind && Installs(id.Group, kind)
}

// Installs reports whether the objects of a kind make Crossplane install a package.
func Installs(group, kind string) bool {
	return group == Packages && (kind == Provider || kind == Configuration || kind == Function)
}

// Serves reports whether Crossplane itself serves the kinds of a group, and no package does.
func Serves(group string) bool {
	return group == Extensions || group == Packages || group == Operations || group == Protection
}

// IsClusterScoped reports whether Crossplane serves all kinds of a group as cluster-scoped.
func IsClusterScoped(group string) bool { return group == Extensions || group == Packages }

// IsPackageCRD reports whether id names a CRD of the package manager itself.
func IsPackageCRD(id manifest.ID) bool {
	return id.IsCRD() && strings.HasSuffix(id.Name, "."+Packages)
}
