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
	// RuleUnsigned is the rule for a package whose signature the cluster demands until the commit is applied.
	RuleUnsigned = "package-signature-dropped"
)

// findings returns what Crossplane does not resolve, or not always in the same way.
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

// unfit returns the finding of a package that is not in a version that another one asks for.
func (n *node) unfit(a asking, why error) manifest.Finding {
	f := manifest.Finding{
		Rule: catalogue.RuleDependency, Severity: manifest.Error, Origin: n.place(),
		Message: fmt.Sprintf("%s depends on %s %s (%s), and it is installed as %s: %v; Crossplane does not install what depends on it",
			a.by, n.request.Source, a.Constraint, a.Origin, n.image.Version, why),
		Fix: "take versions of both that go together",
	}
	if len(n.roots) == 0 && n.request.Installed.Version != "" {
		f.Severity = manifest.Warning // it may be told to
		f.Message += ", and changes the version of a dependency only where it runs with --enable-dependency-version-upgrades"
		f.Fix = "install " + n.request.Source + " in a version that is asked for with an object of the commit"
	}
	return f
}

// twice finds packages that Crossplane would get under two names. Its lock can hold only one.
func (n *node) twice() []manifest.Finding {
	var found []manifest.Finding
	for _, other := range n.roots[min(1, len(n.roots)):] {
		if other.id == n.roots[0].id { // one object that is declared twice, which is an error already
			continue
		}
		found = append(found, manifest.Finding{
			Rule: RuleSource, Severity: manifest.Error, Origin: other.origin,
			Message: fmt.Sprintf("%s installs %s, and so does %s (%s): Crossplane installs a source once, and resolves no dependency while there are two", other.id, n.request.Source, n.roots[0].id, n.roots[0].origin),
			Fix:     "remove one of them",
		})
	}
	if name := crossplane.DependencyName(n.request.Source); len(n.roots) > 0 && len(n.asked) > 0 && n.roots[0].id.Name != name {
		found = append(found, manifest.Finding{
			Rule: RuleSource, Severity: manifest.Warning, Origin: n.roots[0].origin,
			Message: fmt.Sprintf("%s depends on %s, which %s installs under another name than Crossplane would give it: where the dependency comes first, there are two, and Crossplane resolves nothing", n.asked[0].by, n.request.Source, n.roots[0].id),
			Fix:     "call it " + name,
		})
	}
	return found
}

// elsewhere finds packages that the cluster has under another name already: as a dependency, or from another tool.
func (n *node) elsewhere(installed map[string]crossplane.Installed) []manifest.Finding {
	there, ok := installed[n.request.Source]
	if !ok || len(n.roots) == 0 || slices.ContainsFunc(n.roots, func(r root) bool { return there.By(r.id.Name) }) {
		return nil
	}
	return []manifest.Finding{{
		Rule: RuleSource, Severity: manifest.Warning, Origin: n.roots[0].origin,
		Message: fmt.Sprintf("the cluster has %s already, as revision %s, which is none of %s: Crossplane installs a source once, and resolves no dependency while there are two", n.request.Source, there.Revision, n.roots[0].id),
		Fix:     "give the object the name of the one that is there, or delete that first",
	}}
}

// unsigned finds demands of the cluster for a signature that the commit drops.
func (res *resolution) unsigned() []manifest.Finding {
	var dropped []Dropped
	of, first := map[Dropped][]string{}, map[Dropped]*node{}
	for _, n := range res.nodes {
		if n.image == nil || n.image.Version == "" {
			continue
		}
		image := crossplane.Image(n.request.Source, n.image.Version)
		for _, d := range res.configs.Dropped(image) {
			if of[d] == nil {
				dropped, first[d] = append(dropped, d), n
			}
			of[d] = append(of[d], image)
		}
	}
	var found []manifest.Finding
	for _, d := range dropped {
		f := manifest.Finding{Rule: RuleUnsigned, Severity: manifest.Warning, Origin: first[d].place(), Fix: "have the commit demand the same, unless this is meant"}
		f.Message = fmt.Sprintf("%s demands a signature of %s", d.Demand, of[d][0])
		if more := len(of[d]) - 1; more > 0 {
			f.Message += fmt.Sprintf(" and %d more", more)
		}
		f.Message += ", and with this commit "
		switch {
		case d.Another:
			f.Message += d.By.String() + " demands another one"
		case d.By.Config != "":
			f.Message += "nothing does, because of " + d.By.String()
		default:
			f.Message += "nothing does"
		}
		if d.By.Config != "" && !d.By.Live {
			f.Origin = d.By.Origin
		}
		found = append(found, f)
	}
	return found
}

// cycles finds packages that depend on themselves.
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
				Rule: RuleCycle, Severity: manifest.Error, Origin: n.place(),
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
