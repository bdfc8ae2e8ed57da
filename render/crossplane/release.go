package crossplane

import (
	"fmt"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"github.com/Masterminds/semver/v3"
)

// A Release is the one of Crossplane whose package manager Headgate follows. The zero value is the newest.
type Release struct{ version *semver.Version }

// ReleaseOf returns the release of a version, such as v2.3.1. "" is the newest.
func ReleaseOf(version string) (Release, error) {
	if version == "" {
		return Release{}, nil
	}
	v, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	switch {
	case err != nil:
		return Release{}, fmt.Errorf("crossplaneVersion must be a whole version, as v2.3.1, not %q", version)
	case v.Major() < 2:
		return Release{}, fmt.Errorf("crossplaneVersion must be at least v2.0.0, which brought definitions and policies, not %q", version)
	}
	return Release{v}, nil
}

// String returns the version of the release, and "" for the newest.
func (r Release) String() string {
	if r.version == nil {
		return ""
	}
	return "v" + r.version.String()
}

// Meets reports whether a package with a constraint on the version of Crossplane can be installed. The
// newest release meets every constraint.
func (r Release) Meets(constraint *semver.Constraints) bool {
	return r.version == nil || constraint.Check(r.version)
}

// since reports whether the release is at least v2.minor.patch. A release candidate counts as its release.
func (r Release) since(minor, patch uint64) bool {
	if r.version == nil {
		return true
	}
	core := semver.New(r.version.Major(), r.version.Minor(), r.version.Patch(), "", "")
	return !core.LessThan(semver.New(2, minor, patch, "", ""))
}

// Exempts reports whether the CRD of a kind in a provider package stays a CRD.
func (r Release) Exempts(kind string) bool {
	switch kind {
	case "ProviderConfig", "ClusterProviderConfig", "ProviderConfigUsage":
		return r.since(0, 2)
	case "ClusterProviderConfigUsage":
		return r.since(2, 0)
	}
	return false
}

// Takes reports whether the package manager installs an object from a package of a kind.
func (r Release) Takes(packageKind string, id manifest.ID, version string) bool {
	if !Decodes(id, version) {
		return false
	}
	switch packageKind {
	case Provider:
		return id.IsCRD() || IsMRD(id) && r.since(0, 3) || id.IsWebhookConfiguration()
	case Configuration:
		return IsXRD(id) || IsComposition(id) || IsMRAP(id) && r.since(0, 3) || isOperation(id)
	case Function:
		return !r.since(2, 0) // later releases read the CRDs of a Function and install nothing
	}
	return false
}

// Refuses reports whether the package manager refuses a whole package because it contains an object that
// it does not take from it. Later releases leave the object out, if they can decode it.
func (r Release) Refuses(id manifest.ID, version string) bool {
	return !r.since(2, 0) || !Decodes(id, version)
}

// RefusesMisplaced reports whether the package manager refuses a package for every object that it does not
// take from it, whether or not it can decode the object.
func (r Release) RefusesMisplaced() bool { return !r.since(2, 0) }

// Decodes reports whether Crossplane can decode an object that it reads in a package.
func Decodes(id manifest.ID, version string) bool {
	switch {
	case id.IsCRD():
		return version == "v1" || version == "v1beta1"
	case IsXRD(id):
		return version == "v1" || version == "v2"
	case IsComposition(id):
		return version == "v1"
	case IsMRD(id), IsMRAP(id), isOperation(id):
		return version == MRDVersion
	}
	return id.IsWebhookConfiguration() && version == "v1"
}

func isOperation(id manifest.ID) bool {
	return isOf(id, KindOperation) || isOf(id, KindCronOperation) || isOf(id, KindWatchOperation)
}
