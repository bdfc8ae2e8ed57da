package uses

import (
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definitions finds the definition of a kind.
type Definitions struct {
	exact, folded map[schema.GroupKind]string
}

// DefinitionsOf returns the definitions of a commit.
func DefinitionsOf(want render.Desired) Definitions {
	d := Definitions{map[schema.GroupKind]string{}, map[schema.GroupKind]string{}}
	for _, one := range want.Definitions {
		d.exact[schema.GroupKind{Group: one.Group, Kind: one.Kind}] = one.Name
		d.folded[schema.GroupKind{Group: one.Group, Kind: strings.ToLower(one.Kind)}] = one.Name
	}
	return d
}

// Of returns the name of the definition that a place names. found is false if the commit declares no such definition.
func (d Definitions) Of(n Name) (definition string, found bool) {
	if n.Folded {
		definition, found = d.folded[n.GroupKind()]
		return definition, found
	}
	definition, found = d.exact[n.GroupKind()]
	return definition, found
}

// PolicyFor returns the policy that should activate a definition: one that names the group of the definition, or else the only one.
// Paused policies and those of pulled packages do not count, because a line in them would not help, or cannot be added.
func PolicyFor(want render.Desired, definition string) (catalogue.Policy, bool) {
	_, group, _ := strings.Cut(definition, ".")
	policies := slices.DeleteFunc(slices.Clone(want.Policies), func(p catalogue.Policy) bool {
		_, pulled := want.Within(p.Origin)
		return p.Paused || pulled
	})
	for _, p := range policies {
		if slices.ContainsFunc(p.Patterns, func(pattern catalogue.Pattern) bool { return strings.HasSuffix(pattern.Glob, "."+group) }) {
			return p, true
		}
	}
	if len(policies) == 1 {
		return policies[0], true
	}
	return catalogue.Policy{}, false
}
