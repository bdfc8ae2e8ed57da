package crossplane

import (
	"fmt"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"github.com/Masterminds/semver/v3"
)

// A Version is the version of Crossplane whose package manager Headgate imitates. The zero value means the newest version.
type Version struct{ version *semver.Version }

// VersionOf parses a version, such as v2.3.1. "" means the newest version.
func VersionOf(version string) (Version, error) {
	if version == "" {
		return Version{}, nil
	}
	v, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	switch {
	case err != nil:
		return Version{}, fmt.Errorf("crossplaneVersion must be a complete version, such as v2.3.1, not %q", version)
	case v.Major() < 2:
		return Version{}, fmt.Errorf("crossplaneVersion must be at least v2.0.0, which brought definitions and policies, not %q", version)
	}
	return Version{v}, nil
}

// String returns the version, or "" for the newest version.
func (v Version) String() string {
	if v.version == nil {
		return ""
	}
	return "v" + v.version.String()
}

// Meets reports whether a package with a constraint on the version of Crossplane can be installed. The
// newest version meets every constraint.
func (v Version) Meets(constraint *semver.Constraints) bool {
	return v.version == nil || constraint.Check(v.version)
}

// since reports whether the version is at least v2.minor.patch. A release candidate counts as its version.
func (v Version) since(minor, patch uint64) bool {
	return v.Includes(Version{semver.New(2, minor, patch, "", "")})
}

// Includes reports whether the version is a release or a later one. A release candidate counts as its version.
func (v Version) Includes(release Version) bool {
	if v.version == nil {
		return true
	}
	core := semver.New(v.version.Major(), v.version.Minor(), v.version.Patch(), "", "")
	return !core.LessThan(release.version)
}

// Exceeds reports whether the version has a later major or minor version than a release. The newest version exceeds none.
func (v Version) Exceeds(release Version) bool {
	if v.version == nil {
		return false
	}
	next := release.version.IncMinor()
	return v.Includes(Version{&next})
}

// Exempts reports whether the CRD of a kind in a provider package stays a CRD.
func (v Version) Exempts(kind string) bool {
	switch kind {
	case "ProviderConfig", "ClusterProviderConfig", "ProviderConfigUsage":
		return v.since(0, 2)
	case "ClusterProviderConfigUsage":
		return v.since(2, 0)
	}
	return false
}

// Takes reports whether the package manager installs an object from a package of this kind.
func (v Version) Takes(packageKind string, id manifest.ID, version string) bool {
	if !Decodes(id, version) {
		return false
	}
	switch packageKind {
	case Provider:
		return id.IsCRD() || IsMRD(id) && v.since(0, 3) || id.IsWebhookConfiguration()
	case Configuration:
		return IsXRD(id) || IsComposition(id) || IsMRAP(id) && v.since(0, 3) || isOperation(id)
	case Function:
		return !v.since(2, 0) // later versions read the CRDs of a Function but install nothing
	}
	return false
}

// contents lists the objects in packages, with their names for users.
var contents = []struct {
	id             manifest.ID
	version, words string
}{
	{manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, "v1", "CRDs"},
	{MRD(""), MRDVersion, "ManagedResourceDefinitions"},
	{manifest.ID{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}, "v1", "webhook configurations"},
	{XRD(""), "v2", "XRDs"},
	{idOf(KindComposition, ""), "v1", "Compositions"},
	{MRAP(""), MRDVersion, "ManagedResourceActivationPolicies"},
	{idOf(KindOperation, ""), MRDVersion, "operations"},
}

// Installs returns the kinds of objects that the package manager installs from a package of this kind, for users: "CRDs and webhook
// configurations", or "nothing".
func (v Version) Installs(packageKind string) string {
	var words []string
	for _, c := range contents {
		if v.Takes(packageKind, c.id, c.version) {
			words = append(words, c.words)
		}
	}
	last := len(words) - 1
	switch {
	case last < 0:
		return "nothing"
	case last == 0:
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// Refuses reports whether the package manager refuses a whole package because it contains an object that it does not install. Later
// versions skip the object if they can decode it.
func (v Version) Refuses(id manifest.ID, version string) bool {
	return !v.since(2, 0) || !Decodes(id, version)
}

// RefusesMisplaced reports whether the package manager refuses a package for every object that it does not install, whether or not
// it can decode the object.
func (v Version) RefusesMisplaced() bool { return !v.since(2, 0) }

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
