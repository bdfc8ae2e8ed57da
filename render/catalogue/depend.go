package catalogue

import (
	"fmt"
	"path"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Dependency is a package that another package makes Crossplane install.
type Dependency struct {
	Kind       string // Provider, Configuration or Function; "" if the package states no known kind
	Source     string // the repository
	Constraint string // a constraint on the version, or a digest
	Origin     manifest.Origin
}

// RuleDependency is the rule of dependencies that Crossplane cannot resolve.
const RuleDependency = "package-dependency"

// dependsOn returns the dependencies in the metadata of a package. A dependency without a package name is a finding: Crossplane
// installs nothing of a package with such a dependency. A dependency that cannot be decoded is an error.
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
				Rule: RuleDependency, Severity: manifest.Warning, Origin: origin, About: manifest.About{Field: "spec.dependsOn", Subject: p.Name},
				Message: fmt.Sprintf("spec.dependsOn[%d] of package %s names no package: Crossplane does not install a package that holds it", i, p.Name),
				Fix:     "give it apiVersion, kind and package, or one of provider, configuration and function",
			})
			continue
		}
		all = append(all, dep)
	}
	return all, nil
}

// dependencyOf reads an entry. It tries the keys in the same order as Crossplane.
func dependencyOf(stated map[string]any) Dependency {
	text := func(key string) string { s, _ := stated[key].(string); return strings.TrimSpace(s) }
	dep := Dependency{Constraint: text("version")}
	if stated["apiVersion"] != nil && stated["kind"] != nil && stated["package"] != nil {
		dep.Kind, dep.Source = text("kind"), text("package")
		return dep
	}
	for _, kind := range []string{crossplane.Configuration, crossplane.Provider, crossplane.Function} {
		if key := strings.ToLower(kind); stated[key] != nil {
			dep.Kind, dep.Source = kind, text(key)
			return dep
		}
	}
	return dep
}

// Called reports whether the name of a package of the tree matches a source.
func (p *Package) Called(kind, source string) bool {
	return !p.Pulled() && (kind == "" || p.Kind == kind) && path.Base(source) == p.Name
}
