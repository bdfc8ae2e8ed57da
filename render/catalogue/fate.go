package catalogue

import (
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// A fate is what becomes of a document.
type fate string

const (
	skip      fate = "skipped"
	native    fate = "a definition: an MRD"
	converted fate = "a definition: a CRD of a provider package"
	policy    fate = "a policy"
	webhook   fate = "an object under another name: a webhook configuration of a package"
	apply     fate = "an object"
	misplaced fate = "skipped, with a finding: a package does not install it"
	foreign   fate = "what others says: an object of another tool, or one that is encrypted"
	details   fate = "what it says of definitions"
	unknown   fate = "refused: a version of a kind that we must understand and do not"
)

// fateOf decides what becomes of a document, and where it is skipped, why.
func (r release) fateOf(h manifest.Header, in *Package, others Others) (fate, Why) {
	group, version := groupVersion(h.APIVersion)
	kind := kindOf(group, h.Kind)
	switch {
	case h.Kind == "":
		return skip, NotManifest
	case isCipher(h.Kind), isCipher(h.APIVersion):
		return foreign, Encrypted
	case h.Local:
		return skip, LocalOnly
	case group == "kustomize.config.k8s.io":
		return skip, Kustomize
	case isProgram(group, version, h.Kind):
		return skip, ForProgram
	case group == groupMeta:
		return skip, Metadata
	case kind == kindDetails && version == "v1alpha1":
		return details, Described
	case kind == kindDetails:
		return unknown, ""
	case kind == kindLock && in == nil: // read before
		return skip, Lock
	case isOtherTool(group) && others != ApplyOthers:
		return foreign, OtherTool
	case in != nil && in.Kind == "Function" && kind == kindCRD && !r.installs(in, kind, version):
		return skip, NotInstalled // lint accepts the schema of an input; nothing installs it
	case (kind == kindMRD || kind == kindMRAP) && version != "v1alpha1":
		return unknown, ""
	case in == nil && installsPackage(group, h.Kind) && !strings.HasPrefix(version, "v1"):
		return unknown, ""
	case !r.installs(in, kind, version):
		return misplaced, NotInstalled
	case kind == kindMRD:
		return native, ""
	case kind == kindMRAP:
		return policy, ""
	case in == nil:
		return apply, ""
	case in.Kind == "Provider" && kind == kindCRD && version == "v1" && !r.exempts(h.Spec.Kind):
		return converted, ""
	case isWebhook(kind):
		return webhook, ""
	default:
		return apply, ""
	}
}

const (
	kindCRD         = "apiextensions.k8s.io CustomResourceDefinition"
	kindMRD         = "apiextensions.crossplane.io ManagedResourceDefinition"
	kindMRAP        = "apiextensions.crossplane.io ManagedResourceActivationPolicy"
	kindXRD         = "apiextensions.crossplane.io CompositeResourceDefinition"
	kindComposition = "apiextensions.crossplane.io Composition"
)

// kindOf is a kind with its group. Nearly all documents are CRDs, for which nothing is joined.
func kindOf(group, kind string) string {
	if group == "apiextensions.k8s.io" && kind == "CustomResourceDefinition" {
		return kindCRD
	}
	return group + " " + kind
}

// installsPackage reports whether an object of the kind has Crossplane install a package.
func installsPackage(group, kind string) bool {
	return group == groupPackages && (kind == "Provider" || kind == "Configuration" || kind == "Function")
}

const groupPackages = "pkg.crossplane.io"

// versionOf returns the version of the kinds of a group that Headgate has to understand.
func versionOf(group string) string {
	if group == groupPackages {
		return "v1"
	}
	return "v1alpha1"
}

func isWebhook(kind string) bool {
	return kind == "admissionregistration.k8s.io ValidatingWebhookConfiguration" ||
		kind == "admissionregistration.k8s.io MutatingWebhookConfiguration"
}

func isOperation(kind string) bool {
	return kind == "ops.crossplane.io Operation" || kind == "ops.crossplane.io CronOperation" || kind == "ops.crossplane.io WatchOperation"
}

// isOtherTool says whether the objects of a group configure Flux or Argo CD.
func isOtherTool(group string) bool {
	return strings.HasSuffix(group, ".toolkit.fluxcd.io") ||
		group == "argoproj.io" || strings.HasSuffix(group, ".argoproj.io")
}

func groupVersion(apiVersion string) (group, version string) {
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return "", apiVersion
	}
	return group, version
}
