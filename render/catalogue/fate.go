package catalogue

import (
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A fate is the way in which a document is treated.
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
	details   fate = "details of definitions"
	unknown   fate = "refused: a version of a kind that we must understand and do not"
)

// fateOf decides how a document is treated and, if it is skipped, why.
func (w *walk) fateOf(h manifest.Header, in *Package) (fate, Why) {
	id, version := h.ID(), h.Version()
	isDefinition := crossplane.IsMRD(id) || crossplane.IsMRAP(id)
	switch {
	case h.Kind == "":
		return skip, NotManifest
	case isCipher(h.Kind), isCipher(h.APIVersion):
		return foreign, Encrypted
	case h.Local:
		return skip, LocalOnly
	case h.Unsynced && in == nil:
		return skip, Unsynced
	case h.Hook && in == nil: // Crossplane installs what a package holds
		return skip, Hook
	case id.Group == "kustomize.config.k8s.io":
		return skip, Kustomize
	case isProgram(id.Group, version, h.Kind):
		return skip, ForProgram
	case crossplane.IsDevelopment(id.Group):
		return skip, ForProgram
	case id.Group == crossplane.Metadata:
		return skip, Metadata
	case isDetails(id) && version == "v1alpha1":
		return details, Described
	case isDetails(id):
		return unknown, ""
	case IsLock(id) && in == nil: // read before
		return skip, Lock
	case isOtherTool(id.Group) && w.how.Others != ApplyOthers:
		return foreign, OtherTool
	case in != nil && in.Kind == crossplane.Function && id.IsCRD() && !w.installs(in, id, version):
		return skip, NotInstalled // for lint, an input may contain a schema; nothing installs it
	case isDefinition && !slices.Contains(crossplane.MRDVersions(), version):
		return unknown, ""
	case in == nil && crossplane.IsPackage(id) && !strings.HasPrefix(version, "v1"):
		return unknown, ""
	case !w.installs(in, id, version):
		return misplaced, NotInstalled
	case crossplane.IsMRD(id):
		return native, ""
	case crossplane.IsMRAP(id):
		return policy, ""
	case in == nil:
		return apply, ""
	case in.Kind == crossplane.Provider && id.IsCRD() && version == "v1" && !w.version.Exempts(h.Spec.Kind):
		return converted, ""
	case id.IsWebhookConfiguration():
		return webhook, ""
	default:
		return apply, ""
	}
}

// installs reports whether Crossplane installs an object of a package. Outside of packages, every object is installed.
func (w *walk) installs(in *Package, id manifest.ID, version string) bool {
	return in == nil || w.version.Takes(in.Kind, id, version)
}

// versionsOf returns the versions that Headgate understands of the kinds in a group.
func versionsOf(group string) []string {
	switch group {
	case crossplane.Packages:
		return []string{"v1"}
	case crossplane.Extensions:
		return crossplane.MRDVersions()
	}
	return []string{"v1alpha1"}
}

// isOtherTool reports whether the objects of a group configure Flux or Argo CD.
func isOtherTool(group string) bool {
	return strings.HasSuffix(group, ".toolkit.fluxcd.io") ||
		group == "argoproj.io" || strings.HasSuffix(group, ".argoproj.io")
}
