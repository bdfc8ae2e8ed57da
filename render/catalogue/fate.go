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
	unknown   fate = "refused: a version of a kind that we must understand and do not"
)

// fateOf decides what becomes of a document, and where it is skipped, why.
func fateOf(h manifest.Header, in *Package, others Others) (fate, Why) {
	group, version := groupVersion(h.APIVersion)
	kind := group + " " + h.Kind
	switch {
	case h.Kind == "":
		return skip, NotManifest
	case isCipher(h.Kind), isCipher(h.APIVersion):
		return foreign, Encrypted
	case h.Annotations["config.kubernetes.io/local-config"] == "true":
		return skip, LocalOnly
	case group == groupMeta:
		return skip, Metadata
	case isOtherTool(group) && others != ApplyOthers:
		return foreign, OtherTool
	case in != nil && in.Kind == "Function" && kind == kindCRD:
		return skip, NotInstalled // lint accepts the schema of an input; nothing installs it
	case !installs(in, kind, version):
		return misplaced, NotInstalled
	case (kind == kindMRD || kind == kindMRAP) && version != "v1alpha1":
		return unknown, ""
	case kind == kindMRD:
		return native, ""
	case kind == kindMRAP:
		return policy, ""
	case in == nil:
		return apply, ""
	case kind == kindCRD && version == "v1" && !isExempt(h.Spec.Kind):
		return converted, ""
	case isWebhook(kind):
		return webhook, ""
	default:
		return apply, ""
	}
}

const (
	kindCRD  = "apiextensions.k8s.io CustomResourceDefinition"
	kindMRD  = "apiextensions.crossplane.io ManagedResourceDefinition"
	kindMRAP = "apiextensions.crossplane.io ManagedResourceActivationPolicy"
)

// installs says whether Crossplane's package manager installs a kind from a
// package. Outside of packages there is nothing to choose.
func installs(in *Package, kind, version string) bool {
	if in == nil {
		return true
	}
	switch in.Kind {
	case "Provider":
		switch kind {
		case kindCRD:
			return version == "v1" || version == "v1beta1"
		case kindMRD:
			return true
		}
		return isWebhook(kind) && version == "v1"
	case "Configuration":
		switch kind {
		case "apiextensions.crossplane.io CompositeResourceDefinition":
			return version == "v1" || version == "v2"
		case "apiextensions.crossplane.io Composition":
			return version == "v1"
		case kindMRAP:
			return true
		case "ops.crossplane.io Operation", "ops.crossplane.io CronOperation", "ops.crossplane.io WatchOperation":
			return version == "v1alpha1"
		}
	}
	return false
}

// isExempt says whether the CRD of a kind in a provider package stays a CRD.
func isExempt(kind string) bool {
	switch kind {
	case "ProviderConfig", "ClusterProviderConfig", "ProviderConfigUsage", "ClusterProviderConfigUsage":
		return true
	}
	return false
}

func isWebhook(kind string) bool {
	return kind == "admissionregistration.k8s.io ValidatingWebhookConfiguration" ||
		kind == "admissionregistration.k8s.io MutatingWebhookConfiguration"
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
