package catalogue

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// A release is the one of Crossplane whose package manager is followed. The zero value
// is the newest.
type release struct{ version *semver.Version }

// releaseOf is the release of a version, as v2.3.1. "" is the newest.
func releaseOf(version string) (release, error) {
	if version == "" {
		return release{}, nil
	}
	v, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	switch {
	case err != nil:
		return release{}, fmt.Errorf("crossplaneVersion must be a whole version, as v2.3.1, not %q", version)
	case v.Major() < 2:
		return release{}, fmt.Errorf("crossplaneVersion must be at least v2.0.0, which brought definitions and policies, not %q", version)
	}
	return release{v}, nil
}

// since says whether the release is at least v2.minor.patch, to which the release
// candidates of that belong.
func (r release) since(minor, patch uint64) bool {
	if r.version == nil {
		return true
	}
	core := semver.New(r.version.Major(), r.version.Minor(), r.version.Patch(), "", "")
	return !core.LessThan(semver.New(2, minor, patch, "", ""))
}

// exempts says whether the CRD of a kind in a provider package stays a CRD.
func (r release) exempts(kind string) bool {
	switch kind {
	case "ProviderConfig", "ClusterProviderConfig", "ProviderConfigUsage":
		return r.since(0, 2)
	case "ClusterProviderConfigUsage":
		return r.since(2, 0)
	}
	return false
}

// installs says whether Crossplane's package manager installs a kind from a
// package. Outside of packages there is nothing to choose.
func (r release) installs(in *Package, kind, version string) bool {
	if in == nil {
		return true
	}
	if !decodes(kind, version) {
		return false
	}
	switch in.Kind {
	case "Provider":
		return kind == kindCRD || kind == kindMRD && r.since(0, 3) || isWebhook(kind)
	case "Configuration":
		return kind == kindXRD || kind == kindComposition || kind == kindMRAP && r.since(0, 3) || isOperation(kind)
	case "Function":
		return !r.since(2, 0) // later they are looked at, and left out
	}
	return false
}

// refuses says whether a package is refused as a whole, because it holds a kind that is
// not installed from it. Later releases leave the object out, if they can decode it.
func (r release) refuses(kind, version string) bool {
	return !r.since(2, 0) || !decodes(kind, version)
}

// decodes says whether Crossplane can decode a kind that it reads in a package.
func decodes(kind, version string) bool {
	switch kind {
	case kindCRD:
		return version == "v1" || version == "v1beta1"
	case kindXRD:
		return version == "v1" || version == "v2"
	case kindComposition:
		return version == "v1"
	case kindMRD, kindMRAP:
		return version == "v1alpha1"
	}
	return isWebhook(kind) && version == "v1" || isOperation(kind) && version == "v1alpha1"
}
