package catalogue

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Dependency is a package that another one has Crossplane install.
type Dependency struct {
	Kind       string // Provider, Configuration, Function; "" where the package does not say one that is known
	Source     string // the repository
	Constraint string // on its version, or a digest
	Origin     manifest.Origin
}

// RuleDependency is the rule of dependencies that Crossplane cannot resolve.
const RuleDependency = "package-dependency"

// dependsOn returns the dependencies that the metadata of a package states. One that names no
// package is a finding: Crossplane installs nothing of such a package. One that cannot be decoded
// is an error.
func (w *walk) dependsOn(p *Package, d *manifest.Document, u *unstructured.Unstructured) ([]Dependency, error) {
	spec, isObject := u.Object["spec"].(map[string]any)
	if !isObject && u.Object["spec"] != nil {
		return nil, Errorf(d.OriginOf("spec"), "spec of package %s must be an object", p.Name)
	}
	list, isList := spec["dependsOn"].([]any)
	if !isList && spec["dependsOn"] != nil {
		return nil, Errorf(d.OriginOf("spec", "dependsOn"), "spec.dependsOn of package %s must be a list", p.Name)
	}
	if len(list) == 0 {
		return nil, nil
	}
	var all []Dependency
	for i, origin := range d.OriginsOf(len(list), "spec", "dependsOn") {
		stated, ok := list[i].(map[string]any)
		if !ok {
			return nil, Errorf(origin, "spec.dependsOn[%d] of package %s must be an object", i, p.Name)
		}
		dep := dependencyOf(stated)
		dep.Origin = origin
		if dep.Source == "" {
			w.findings = append(w.findings, manifest.Finding{
				Rule: RuleDependency, Severity: manifest.Warning, Origin: origin,
				Message: fmt.Sprintf("spec.dependsOn[%d] of package %s names no package: Crossplane does not install a package that holds it", i, p.Name),
				Fix:     "give it apiVersion, kind and package, or one of provider, configuration and function",
			})
			continue
		}
		all = append(all, dep)
	}
	return all, nil
}

// dependencyOf reads an entry in the order in which Crossplane does.
func dependencyOf(stated map[string]any) Dependency {
	text := func(key string) string { s, _ := stated[key].(string); return strings.TrimSpace(s) }
	dep := Dependency{Constraint: text("version")}
	if stated["apiVersion"] != nil && stated["kind"] != nil && stated["package"] != nil {
		dep.Kind, dep.Source = text("kind"), text("package")
		return dep
	}
	for _, kind := range []string{"Configuration", "Provider", "Function"} {
		if key := strings.ToLower(kind); stated[key] != nil {
			dep.Kind, dep.Source = kind, text(key)
			return dep
		}
	}
	return dep
}

// Choose is the version that Crossplane takes of the tags of a repository: the newest that
// all constraints allow. Tags that are no complete versions, as "v1", do not count. A
// constraint may be a digest, which is taken as it is.
func Choose(tags, constraints []string) (version string, err error) {
	var all []*semver.Constraints
	digest := ""
	for _, text := range constraints {
		if IsDigest(text) {
			if digest != "" && digest != text {
				return "", fmt.Errorf("no image has both digests, %s and %s", digest, text)
			}
			digest = text
			continue
		}
		c, err := semver.NewConstraint(text)
		if err != nil {
			return "", fmt.Errorf("%q is no constraint on versions", text)
		}
		all = append(all, c)
	}
	switch {
	case digest != "" && len(all) > 0:
		return "", fmt.Errorf("nobody can tell whether %s is a version that %s allows", digest, quoted(constraints, " and "))
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

// allows says whether a constraint allows a version, or why nobody can tell.
func allows(constraint, version string) error {
	if IsDigest(constraint) {
		if version != constraint {
			return fmt.Errorf("%s is not %s", version, constraint)
		}
		return nil
	}
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return fmt.Errorf("%q is no constraint on versions", constraint)
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return fmt.Errorf("%s is no version, and %q is a constraint on versions", version, constraint)
	}
	if !c.Check(v) {
		return fmt.Errorf("%s is not %s", version, constraint)
	}
	return nil
}

// IsDigest says whether a version is the digest of an image, and no tag.
func IsDigest(version string) bool {
	hash, ok := strings.CutPrefix(version, "sha256:")
	return ok && len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == ""
}

// Reference is a source and a version as an image is written.
func Reference(source, version string) string {
	if strings.Contains(version, ":") {
		return source + "@" + version
	}
	return source + ":" + version
}

// splitReference splits what spec.package holds. Where it has a tag and a digest, the digest
// counts.
func splitReference(image string) (source, version string) {
	source, digest, _ := strings.Cut(strings.TrimSpace(image), "@")
	if i := strings.LastIndexByte(source, ':'); i > strings.LastIndexByte(source, '/') {
		source, version = source[:i], source[i+1:]
	}
	if digest != "" {
		version = digest
	}
	return source, version
}

// dnsLabel is the name that Crossplane gives a package which it installs as a dependency.
func dnsLabel(source string) string {
	_, repository, ok := strings.Cut(source, "/")
	if !ok {
		repository = source
	}
	repository = repository[:min(len(repository), 63)]
	var b strings.Builder
	for i := range len(repository) {
		switch c := repository[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			b.WriteByte(c)
		case strings.IndexByte("./:-", c) >= 0 && i != 0 && i != 62 && i != len(repository)-1:
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

// Called says whether a package of the tree is the one of a source.
func (p *Package) Called(kind, source string) bool {
	return !p.Pulled() && (kind == "" || p.Kind == kind) && path.Base(source) == p.Name
}

func quoted(texts []string, between string) string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = fmt.Sprintf("%q", t)
	}
	return strings.Join(all, between)
}
