package git

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// rangePrefix begins a ref that is a range of versions. No name of a branch or tag has a colon.
const rangePrefix = "semver:"

// isRange reports whether a ref is a range of versions.
func isRange(ref string) bool { return strings.HasPrefix(ref, rangePrefix) }

// rangeOf parses a range of versions.
func rangeOf(ref string) (*semver.Constraints, error) {
	text := strings.TrimPrefix(ref, rangePrefix)
	versions, err := semver.NewConstraint(text)
	if err != nil || len(text) > 200 { // the library quotes the whole text
		return nil, fmt.Errorf("cannot read %.60q: it is no range of versions; write semver:>=1.2.0, semver:~1.2 or semver:1.x", ref)
	}
	return versions, nil
}

// newest returns the full name of the tag with the highest version in a range, or "". As in Flux, a tag has all three numbers and at most
// one v before them, and a pre-release counts only if the range names one. Of equal versions, the name that comes last counts.
func (r refs) newest(within *semver.Constraints) string {
	var found string
	var highest *semver.Version
	for name := range r.names {
		tag, is := strings.CutPrefix(name, "refs/tags/")
		v, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
		if !is || err != nil || !within.Check(v) {
			continue
		}
		if highest == nil || cmp.Or(v.Compare(highest), strings.Compare(name, found)) > 0 {
			found, highest = name, v
		}
	}
	return found
}

// inRange returns the full name of the newest tag in a range.
func (r refs) inRange(ref string) (string, error) {
	within, err := rangeOf(ref)
	if err != nil {
		return "", err
	}
	if name := r.newest(within); name != "" {
		return name, nil
	}
	return "", fmt.Errorf("no tag is a version in the range %s; %s", strings.TrimPrefix(ref, rangePrefix), r.others(""))
}
