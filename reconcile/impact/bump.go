package impact

import (
	"strings"

	"headgate.dev/headgate/render/crossplane"

	"github.com/Masterminds/semver/v3"
)

// A Bump is how far apart two versions of a package are.
type Bump string

// The bumps. No rule trusts an older version, nor any other: an equal one, a candidate, and what is no version, such as a digest.
const (
	Patch Bump = "patch"
	Minor Bump = "minor"
	Major Bump = "major"
	Older Bump = "older"
	Other Bump = "not trusted"

	Unread Bump = "not read" // the package, so its kinds are not known
)

// Bumps are the bumps that a rule may trust, from the smallest.
var Bumps = []Bump{Patch, Minor, Major}

// BumpOf returns the bump from one version to another. By Semantic Versioning, a minor version of 0.x may break everything, and so may
// a patch of 0.0.x: both are major.
func BumpOf(from, to string) Bump {
	was, err := semver.StrictNewVersion(strings.TrimPrefix(from, "v"))
	if err != nil {
		return Other
	}
	is, err := semver.StrictNewVersion(strings.TrimPrefix(to, "v"))
	switch {
	case err == nil && is.LessThan(was):
		return Older
	case err != nil, is.Prerelease() != "", is.Equal(was):
		return Other
	case is.Major() != was.Major():
		return Major
	case is.Minor() != was.Minor() && is.Major() == 0:
		return Major
	case is.Minor() != was.Minor():
		return Minor
	case is.Major() == 0 && is.Minor() == 0:
		return Major
	}
	return Patch
}

// A Trust is a kind of packages and the largest bump that needs no look.
type Trust struct {
	Kind string
	Bump Bump
}

// DefaultTrust is the trust without a setting. A provider may be checked by the schemas of its kinds; what a function composes is its
// program, and a Configuration changes what composite resources mean.
func DefaultTrust() []Trust {
	return []Trust{{crossplane.Provider, Minor}, {crossplane.Configuration, Patch}, {crossplane.Function, Patch}}
}

// Trusted reports whether rules trust a bump of a kind of packages.
func Trusted(rules []Trust, kind string, bump Bump) bool {
	size := map[Bump]int{Patch: 1, Minor: 2, Major: 3}
	for _, t := range rules {
		if t.Kind == kind && size[bump] > 0 && size[bump] <= size[t.Bump] {
			return true
		}
	}
	return false
}
