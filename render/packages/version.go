package packages

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"

	"github.com/Masterminds/semver/v3"
)

// Choose returns the version that Crossplane chooses from the tags of a repository: the newest that all constraints allow. Tags
// that are not complete versions, such as "v1", do not count. A constraint may be a digest, which is returned unchanged.
func Choose(tags, constraints []string) (version string, err error) {
	var all []*semver.Constraints
	digest := ""
	for _, text := range constraints {
		if crossplane.IsDigest(text) {
			if digest != "" && digest != text {
				return "", fmt.Errorf("no image has both digests, %s and %s", digest, text)
			}
			digest = text
			continue
		}
		c, err := semver.NewConstraint(text)
		if err != nil {
			return "", fmt.Errorf("%q is not a version constraint", text)
		}
		all = append(all, c)
	}
	switch {
	case digest != "" && len(all) > 0:
		return "", fmt.Errorf("a digest has no version: it is not known whether %s allows %s", digest, quoted(constraints, " and "))
	case digest != "":
		return digest, nil
	}
	var newest *semver.Version
	for _, tag := range tags {
		v, err := semver.NewVersion(tag)
		if err != nil || v.String() != strings.TrimPrefix(tag, "v") {
			continue
		}
		refused := slices.ContainsFunc(all, func(c *semver.Constraints) bool { return !c.Check(v) })
		if !refused && (newest == nil || newest.LessThan(v) || newest.Equal(v) && newest.Original() < tag) {
			newest = v
		}
	}
	if newest == nil {
		return "", fmt.Errorf("none of its %d tags is a version that %s allows", len(tags), quoted(constraints, " and "))
	}
	return newest.Original(), nil
}

// allows returns nil if a constraint allows a version, or else an error with the reason.
func allows(constraint, version string) error {
	if crossplane.IsDigest(constraint) {
		if version != constraint {
			return fmt.Errorf("%s is not %s", version, constraint)
		}
		return nil
	}
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return fmt.Errorf("%q is not a version constraint", constraint)
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return fmt.Errorf("%s is not a version, but %q is a constraint on versions", version, constraint)
	}
	if !c.Check(v) {
		return fmt.Errorf("%s is not %s", version, constraint)
	}
	return nil
}

func quoted(texts []string, between string) string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = fmt.Sprintf("%q", t)
	}
	return strings.Join(all, between)
}
