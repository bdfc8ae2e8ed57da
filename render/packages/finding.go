package packages

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// The rules of packages in registries.
const (
	RuleUnread = "package-unread"
	RuleSource = "package-installed-twice"
	RuleCycle  = "package-cycle"
	// RuleUnsigned is the rule for a package whose signature the cluster requires only until the commit is applied.
	RuleUnsigned = "package-signature-dropped"
)

// findings returns findings about dependencies that Crossplane does not resolve, or that it does not always resolve in the same
// way.
func (res *resolution) findings() []manifest.Finding {
	var found []manifest.Finding
	for _, n := range res.nodes {
		found = append(found, n.twice()...)
		found = append(found, n.elsewhere(res.installed)...)
		found = append(found, n.stale(res.locked)...)
		if n.image == nil || n.err != nil {
			continue
		}
		for _, f := range n.image.Findings {
			f.Origin = n.place()
			found = append(found, f)
		}
		for _, a := range n.asked {
			if err := allows(a.Constraint, n.image.Version); err != nil {
				found = append(found, n.unfit(a, err))
			}
		}
	}
	return slices.Concat(found, res.cycles(), res.unsigned())
}

// unfit returns the finding about a package whose version does not satisfy a dependency.
func (n *node) unfit(a asking, why error) manifest.Finding {
	f := manifest.Finding{
		Rule: catalogue.RuleDependency, Severity: manifest.Error, Origin: n.place(),
		About: manifest.About{Subject: fmt.Sprintf("%s %s of %s", n.request.Source, a.Constraint, a.by)},
		Message: fmt.Sprintf("%s depends on %s %s (%s), but the installed version is %s: %v; Crossplane does not install packages that depend on it",
			a.by, n.request.Source, a.Constraint, a.Origin, n.image.Version, why),
		Fix: "use versions of both that are compatible",
	}
	if len(n.roots) == 0 && n.request.Installed.Version != "" {
		f.Severity = manifest.Warning // Crossplane may run with the flag
		f.Message += ", and changes the version of a dependency only if it runs with --enable-dependency-version-upgrades"
		f.Fix = "install " + n.request.Source + " in a required version with an object of the commit"
	}
	return f
}

// twice finds packages that Crossplane would get under two names. Its lock can contain only one.
func (n *node) twice() []manifest.Finding {
	var found []manifest.Finding
	for _, other := range n.roots[min(1, len(n.roots)):] {
		if other.id == n.roots[0].id { // the same object declared twice is already an error
			continue
		}
		found = append(found, manifest.Finding{
			Rule: RuleSource, Severity: manifest.Error, Origin: other.origin, About: manifest.About{Object: other.id, Subject: n.request.Source},
			Message: fmt.Sprintf("%s installs %s, and so does %s (%s): Crossplane installs a source only once, and resolves no dependency while there are two", other.id, n.request.Source, n.roots[0].id, n.roots[0].origin),
			Fix:     "remove one of them",
		})
	}
	if name := crossplane.DependencyName(n.request.Source); len(n.roots) > 0 && len(n.asked) > 0 && n.roots[0].id.Name != name {
		found = append(found, manifest.Finding{
			Rule: RuleSource, Severity: manifest.Warning, Origin: n.roots[0].origin, About: manifest.About{Object: n.roots[0].id, Subject: n.asked[0].by},
			Message: fmt.Sprintf("%s depends on %s, which %s installs under a different name than Crossplane would: if Crossplane installs the dependency first, there are two, and it resolves no dependency", n.asked[0].by, n.request.Source, n.roots[0].id),
			Fix:     "call it " + name,
		})
	}
	return found
}

// elsewhere finds packages that the cluster already has under another name: as a dependency, or from another tool.
func (n *node) elsewhere(installed map[string]crossplane.Installed) []manifest.Finding {
	there, ok := installed[n.request.Source]
	if !ok || len(n.roots) == 0 || slices.ContainsFunc(n.roots, func(r root) bool { return there.By(r.id.Name) }) {
		return nil
	}
	return []manifest.Finding{{
		Rule: RuleSource, Severity: manifest.Warning, Origin: n.roots[0].origin, About: manifest.About{Object: n.roots[0].id, Subject: there.Revision},
		Message: fmt.Sprintf("the cluster already has %s, as revision %s, which does not belong to %s: Crossplane installs a source only once, and resolves no dependency while there are two", n.request.Source, there.Revision, n.roots[0].id),
		Fix:     "give the object the name of the existing one, or delete that first",
	}}
}

// unsigned finds required signatures in the cluster that the commit no longer requires.
func (res *resolution) unsigned() []manifest.Finding {
	var all drops
	for _, n := range res.nodes {
		image := n.named()
		if image == "" {
			continue
		}
		for _, d := range res.configs.Dropped(image) {
			all.add(d, image, n.place())
		}
	}
	return all.findings()
}

// cycles finds packages that depend on themselves, directly or through others.
func (res *resolution) cycles() []manifest.Finding {
	depends := map[*node][]*node{}
	for _, n := range res.nodes {
		for _, a := range n.asked {
			if a.from != nil {
				depends[a.from] = append(depends[a.from], n)
			}
		}
	}
	var found []manifest.Finding
	done, way := map[*node]bool{}, []*node{}
	var visit func(n *node)
	visit = func(n *node) {
		if i := slices.Index(way, n); i >= 0 {
			var names []string
			for _, on := range append(way[i:len(way):len(way)], n) {
				names = append(names, on.request.Source)
			}
			found = append(found, manifest.Finding{
				Rule: RuleCycle, Severity: manifest.Error, Origin: n.place(), About: manifest.About{Subject: strings.Join(names, " ")},
				Message: "packages depend on each other in a circle, so Crossplane installs none of them: " + strings.Join(names, " → "),
				Fix:     "choose a version of one package that does not depend on the next",
			})
			return
		}
		if done[n] {
			return
		}
		done[n] = true
		way = append(way, n)
		for _, next := range depends[n] {
			visit(next)
		}
		way = way[:len(way)-1]
	}
	for _, n := range res.nodes {
		visit(n)
	}
	return found
}
