package preflight

import (
	"regexp"
	"strconv"
	"strings"

	"headgate.dev/headgate/render/crossplane"
)

// A Kubernetes is the release of an API server, beside what Headgate knows.
type Kubernetes struct {
	Version string // as the API server reports it, such as v1.34.1+k3s1
	Newest  int    // the newest minor release whose kinds Headgate knows
	Oldest  int    // the oldest minor release that the Kubernetes project maintains beside it
	Set     string // kubernetesVersion of the Sync, such as 1.34; may be empty
}

var kubernetesRelease = regexp.MustCompile(`^v?1\.(\d{1,4})(?:\D|$)`)

// Judge compares the release with the known ones.
func (k Kubernetes) Judge() Result {
	found := kubernetesRelease.FindStringSubmatch(k.Version)
	if found == nil {
		return unknown("", "the API server reports the version %q, which is no release of Kubernetes 1", k.Version)
	}
	minor, _ := strconv.Atoi(found[1]) // the expression matches digits
	set := kubernetesRelease.FindStringSubmatch(k.Set)
	switch {
	case set != nil && set[1] != found[1]:
		return warn("set spec.kubernetesVersion to 1."+found[1], "the API server is %s, and the Sync says 1.%s: commits are checked against the wrong release", k.Version, set[1])
	case minor > k.Newest:
		return warn("update Headgate", "the API server is %s; this Headgate knows the kinds up to 1.%d", k.Version, k.Newest)
	case minor < k.Oldest:
		return warn("update Kubernetes", "the API server is %s, which the Kubernetes project does not maintain beside 1.%d", k.Version, k.Newest)
	}
	return fine("the API server is %s, whose kinds Headgate knows", k.Version)
}

// A Crossplane is what a cluster shows about its Crossplane.
type Crossplane struct {
	Served  bool     // the API server serves definitions
	Version string   // such as v2.3.1; empty if it is not known
	From    string   // what shows the version
	Last    string   // the last version that it may also be, with all of its patch releases; empty if the version is exact
	Hidden  string   // why the version is not known
	Known   []string // the releases whose rules Headgate knows, oldest first
	Set     string   // crossplaneVersion of the Sync; may be empty
	Needed  bool     // the Sync has crdOwner: Crossplane
}

// Judge compares the version with the known ones.
func (c Crossplane) Judge() Result {
	if !c.Served {
		return c.missing()
	}
	if c.Version == "" {
		return unknown("grant list on deployments.apps, or set spec.crossplaneVersion", "Crossplane is installed, and its version is not known: %s", c.Hidden)
	}
	live, err := crossplane.VersionOf(c.Version)
	if err != nil {
		return unknown("set spec.crossplaneVersion", "Crossplane is installed, and %s shows %q, which is no version of Crossplane 2", c.From, c.Version)
	}
	last := c.Known[len(c.Known)-1]
	newest, _ := crossplane.VersionOf(last) // Headgate's own list
	switch {
	case !c.fits(live):
		return warn("set spec.crossplaneVersion to "+c.name(), "Crossplane is %s (%s), and the Sync follows the package rules of %s", c.name(), c.From, c.Set)
	case live.Exceeds(newest):
		return warn("update Headgate", "Crossplane is %s (%s); this Headgate knows the rules up to %s", c.name(), c.From, last)
	}
	return fine("Crossplane is %s (%s), whose rules Headgate knows", c.name(), c.From)
}

// fits reports whether the version may be the one that the Sync sets.
func (c Crossplane) fits(live crossplane.Version) bool {
	if c.Set == "" {
		return true
	}
	set, _ := crossplane.VersionOf(c.Set) // valid in a valid Sync
	if c.Last == "" {
		return set.String() == live.String()
	}
	last, _ := crossplane.VersionOf(c.Last) // Headgate's own list
	return set.Includes(live) && !set.Exceeds(last)
}

// name returns the version, or the range of versions.
func (c Crossplane) name() string {
	version := "v" + strings.TrimPrefix(c.Version, "v")
	if c.Last == "" || c.Last == c.Version {
		return version
	}
	return version + " to " + c.Last
}

func (c Crossplane) missing() Result {
	switch {
	case c.Needed:
		return fail("install Crossplane 2, or set spec.crdOwner to Headgate", "the Sync has crdOwner: Crossplane, and the API server does not serve %s", crossplane.KindMRD)
	case c.Version != "":
		return fail("update Crossplane to version 2", "Crossplane is %s (%s), and the API server does not serve %s", c.Version, c.From, crossplane.KindMRD)
	}
	return fine("Crossplane is not installed, so Headgate makes the CRDs")
}
