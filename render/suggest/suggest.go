// Package suggest decides the smallest activation policies for what a commit uses, and edits its policies accordingly.
package suggest

import (
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/uses"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Suggestion is what the policies of a commit should activate. All lists are sorted.
type Suggestion struct {
	Smallest []Line // the smallest policy for everything that the commit uses
	Missing  []Line // what the policies of the commit lack
	Unused   []string
	Unknown  []Unknown
	Unread   []Unread
	Whole    bool // every definition is known, so that a pattern may be judged

	want  render.Desired
	needs map[string][]manifest.Origin
	owned map[string]bool // definitions that are active without a policy
}

// A Line is an entry of a policy, with the places that need it.
type Line struct {
	Pattern  string            `json:"pattern"`
	Matches  []string          `json:"matches,omitempty"` // of a pattern with a wildcard
	NeededBy []manifest.Origin `json:"neededBy"`
}

// An Unknown is a used kind whose definition is not known, because no package that could be read holds it.
type Unknown struct {
	Group    string            `json:"group"`
	Kind     string            `json:"kind"`
	NeededBy []manifest.Origin `json:"neededBy"`
}

// An Unread is a place that may use more kinds.
type Unread struct {
	Origin manifest.Origin `json:"origin"`
	Why    string          `json:"why"`
}

// For returns the suggestion for a commit.
func For(want render.Desired) Suggestion {
	s := Suggestion{want: want, Whole: len(want.Definitions) > 0 && want.Unknown() == 0, needs: map[string][]manifest.Origin{}, owned: map[string]bool{}}
	used := uses.Of(want)
	s.resolve(used.All)
	for _, u := range used.Unread {
		s.Unread = append(s.Unread, Unread{s.place(u.Origin()), u.Why})
	}
	for _, u := range want.Unread {
		if u.MayDefine() && !want.Live {
			s.Unread = append(s.Unread, Unread{u.Origin, u.Err.Error()})
		}
	}
	var all, missing []string
	for _, d := range want.Definitions {
		s.owned[d.Name] = slices.ContainsFunc(d.Reasons, func(a activation.Activator) bool { return a.Cause != activation.Matched })
		switch {
		case s.needs[d.Name] == nil && d.Active && !s.owned[d.Name]:
			s.Unused = append(s.Unused, d.Name)
		case s.needs[d.Name] == nil, s.owned[d.Name]:
		default:
			all = append(all, d.Name)
			if !d.Active {
				missing = append(missing, d.Name)
			}
		}
	}
	for _, name := range s.elsewhere() {
		all, missing = append(all, name), append(missing, name)
	}
	s.Smallest, s.Missing = s.lines(all), s.lines(missing)
	return s
}

// Used returns the number of definitions that the commit uses.
func (s Suggestion) Used() int { return len(s.needs) }

// place returns an origin in the commit: of a place in a pulled package, the line that requests the package.
func (s *Suggestion) place(at manifest.Origin) manifest.Origin {
	return s.want.Placed(manifest.Finding{Origin: at}).Origin
}

// resolve sorts uses by definition, and collects the kinds that are not known.
func (s *Suggestion) resolve(all []uses.Use) {
	definitions, exempt := uses.DefinitionsOf(s.want), s.declared()
	known, unknown := map[string][]uses.Use{}, map[schema.GroupKind][]uses.Use{}
	for _, u := range all {
		if name, found := definitions.Of(u.Name); found {
			known[name] = append(known[name], u)
		} else if !s.Whole && !u.Guess && !u.Folded && !exempt(u.GroupKind()) {
			unknown[u.GroupKind()] = append(unknown[u.GroupKind()], u)
		}
	}
	for name, of := range known {
		s.needs[name] = s.places(of)
	}
	for gk, of := range unknown {
		s.Unknown = append(s.Unknown, Unknown{gk.Group, gk.Kind, s.places(of)})
	}
	slices.SortFunc(s.Unknown, func(a, b Unknown) int {
		return strings.Compare(a.Group+" "+a.Kind, b.Group+" "+b.Kind)
	})
}

// places returns the places of uses, each once.
func (s *Suggestion) places(of []uses.Use) []manifest.Origin {
	origins := uses.Origins(of)
	for i, o := range origins {
		origins[i] = s.place(o)
	}
	slices.SortFunc(origins, manifest.Origin.Compare)
	return slices.Compact(origins)
}

// declared returns a function that reports whether a kind needs no policy: a kind of Kubernetes or Crossplane, an input of a function, a
// kind that an XRD or a CRD of the commit declares, and the configuration of a provider.
func (s *Suggestion) declared() func(schema.GroupKind) bool {
	kinds := map[schema.GroupKind]bool{}
	for gk := range render.KubernetesScopes() {
		kinds[gk] = true
	}
	for _, o := range slices.Concat(s.want.Objects, s.want.Schemas) {
		for _, gk := range kindsOf(o) {
			kinds[gk] = true
		}
	}
	for _, l := range s.want.Left {
		if o, err := l.Object(); err == nil && crossplane.IsXRD(l.ID) {
			for _, gk := range kindsOf(o) {
				kinds[gk] = true
			}
		}
	}
	return func(gk schema.GroupKind) bool {
		return kinds[gk] || crossplane.Serves(gk.Group) || !strings.Contains(gk.Group, ".") || strings.Contains(gk.Group, ".fn.") ||
			strings.HasSuffix(gk.Group, ".k8s.io") || s.want.Crossplane.Exempts(gk.Kind)
	}
}

// kindsOf returns the kinds that a CRD or an XRD declares.
func kindsOf(o render.Object) []schema.GroupKind {
	if o.ID.IsCRD() {
		return []schema.GroupKind{o.Serves}
	}
	if !crossplane.IsXRD(o.ID) {
		return nil
	}
	content, err := o.Content()
	if err != nil {
		return nil
	}
	spec, _ := content.Object["spec"].(map[string]any)
	group, _ := spec["group"].(string)
	var all []schema.GroupKind
	for _, key := range []string{"names", "claimNames"} {
		names, _ := spec[key].(map[string]any)
		if kind, _ := names["kind"].(string); kind != "" {
			all = append(all, schema.GroupKind{Group: group, Kind: kind})
		}
	}
	return all
}

// elsewhere returns the definitions of kinds that are not known but whose CRD is among the schemas of the Sync, as a managed kind. Only
// then is the name certain: the plural of a kind follows no rule. What a policy names already is not returned.
func (s *Suggestion) elsewhere() []string {
	var names []string
	for _, o := range s.want.Schemas {
		i := slices.IndexFunc(s.Unknown, func(u Unknown) bool { return o.Serves == schema.GroupKind{Group: u.Group, Kind: u.Kind} })
		if i < 0 || !isManaged(o) {
			continue
		}
		s.needs[o.ID.Name] = s.Unknown[i].NeededBy
		s.Unknown = slices.Delete(s.Unknown, i, i+1)
		if !s.want.Names(o.ID.Name) {
			names = append(names, o.ID.Name)
		}
	}
	return names
}

func isManaged(o render.Object) bool {
	content, err := o.Content()
	if err != nil {
		return false
	}
	spec, _ := content.Object["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	categories, _ := names["categories"].([]any)
	return slices.Contains(categories, any("managed"))
}

// lines returns the fewest entries that activate definitions. A pattern stands for a whole group of at least two definitions, if it
// matches nothing that is not among them, and if all definitions are known.
func (s Suggestion) lines(names []string) []Line {
	among := map[string]bool{}
	groups := map[string][]string{}
	for _, name := range names {
		among[name] = true
		_, group, _ := strings.Cut(name, ".")
		groups[group] = append(groups[group], name)
	}
	var all []Line
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		pattern := "*." + group
		if matches, only := s.matches(pattern, among); s.Whole && only && len(matches) > 1 {
			all = append(all, s.line(pattern, matches))
			continue
		}
		slices.Sort(groups[group])
		for _, name := range groups[group] {
			all = append(all, Line{Pattern: name, NeededBy: s.needs[name]})
		}
	}
	return withoutCovered(all)
}

// withoutCovered takes out the entries that a pattern of another group covers: *.example.org matches what is in s3.example.org.
func withoutCovered(all []Line) []Line {
	return slices.DeleteFunc(slices.Clone(all), func(l Line) bool {
		return slices.ContainsFunc(all, func(by Line) bool {
			return by.Pattern != l.Pattern && crossplane.Covers([]string{by.Pattern}, l.Pattern)
		})
	})
}

// matches returns the definitions that a pattern activates, and whether all of them are among some.
func (s Suggestion) matches(pattern string, among map[string]bool) (names []string, only bool) {
	only = true
	for _, d := range s.want.Definitions {
		if !crossplane.Matches(pattern, d.Name) || s.owned[d.Name] {
			continue
		}
		names = append(names, d.Name)
		only = only && among[d.Name]
	}
	return names, only
}

func (s Suggestion) line(pattern string, matches []string) Line {
	var needed []manifest.Origin
	for _, name := range matches {
		needed = append(needed, s.needs[name]...)
	}
	slices.SortFunc(needed, manifest.Origin.Compare)
	return Line{Pattern: pattern, Matches: matches, NeededBy: slices.Compact(needed)}
}
