// Package lint reads a commit as a reviewer would, and finds objects that do not work together although each one is valid. The
// package that reads an object finds the errors in it.
package lint

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The rules.
const (
	RuleInactive = "kind-inactive" // something uses a kind that no policy activates
	RuleUnread   = "kinds-unread"  // something may use kinds in a way that Headgate does not read
)

// Findings returns what Coverage and References find, without the notes of References about what another source may declare: a
// report of every pass and of every pull request would repeat them.
func Findings(want render.Desired, stays ...string) []manifest.Finding {
	return append(Coverage(want, stays...), slices.DeleteFunc(References(want), func(f manifest.Finding) bool { return f.Severity == manifest.Note })...)
}

// Coverage finds uses of kinds that the commit declares but does not activate: managed resources, and in Compositions resources,
// inputs of functions and Go templates. The definitions in stays remain active without a policy, so they are not reported. A commit
// without definitions has no findings. Packages that Crossplane installs count like the commit itself. The findings are sorted.
func Coverage(want render.Desired, stays ...string) []manifest.Finding {
	c := coverage{want: want, inactive: map[schema.GroupKind]string{}}
	for _, d := range want.Definitions {
		if !d.Active && !slices.Contains(stays, d.Name) {
			c.inactive[schema.GroupKind{Group: d.Group, Kind: d.Kind}] = d.Name
		}
	}
	if len(want.Definitions) == 0 {
		return nil
	}
	declared := map[schema.GroupKind]bool{}
	for _, d := range want.Definitions {
		declared[schema.GroupKind{Group: d.Group, Kind: d.Kind}] = true
	}
	home := render.HomesOf(want).Complete()
	c.home = home
	for _, o := range want.Objects {
		kind := schema.GroupKind{Group: o.ID.Group, Kind: o.ID.Kind}
		if name, found := c.inactive[kind]; found {
			c.found = append(c.found, manifest.Finding{
				Rule: RuleInactive, Severity: manifest.Warning, Origin: o.Origin,
				Message: fmt.Sprintf("%s is of %s, which no policy activates", home(o.ID), name), Fix: c.fix(name),
			})
		}
		if crossplane.IsComposition(o.ID) || declared[kind] {
			c.object(o)
		}
	}
	for _, l := range want.Left {
		if l.Composition != nil {
			c.object(*l.Composition)
		}
	}
	for i, f := range c.found {
		c.found[i] = want.Placed(f)
	}
	slices.SortFunc(c.found, manifest.Finding.Compare)
	return slices.Compact(c.found)
}

type coverage struct {
	want     render.Desired
	inactive map[schema.GroupKind]string // inactive definitions by kind
	found    []manifest.Finding
	home     func(manifest.ID) manifest.ID
}

// object finds what an object uses.
func (c *coverage) object(o render.Object) {
	content, err := o.Content()
	if err != nil {
		return // the apply reports this error
	}
	spec, _ := content.Object["spec"].(map[string]any)
	if !crossplane.IsComposition(o.ID) {
		c.walk(o, spec, "spec")
		return
	}
	for _, key := range []string{"resources", "patchSets"} {
		c.walk(o, spec[key], "spec", key)
	}
	steps, _ := spec["pipeline"].([]any)
	for i, step := range steps {
		step, _ := step.(map[string]any)
		c.input(o, step, "spec", "pipeline", i, "input")
	}
}

// walk finds every object, and every reference to one, in a value.
func (c *coverage) walk(o render.Object, v any, path ...any) {
	switch v := v.(type) {
	case map[string]any:
		version, _ := v["apiVersion"].(string)
		kind, _ := v["kind"].(string)
		if name, found := c.use(version, kind); found {
			c.say(o, name, o.OriginOf(append(slices.Clone(path), "kind")...))
		}
		for key, below := range v {
			c.walk(o, below, append(slices.Clone(path), key)...)
		}
	case []any:
		for i, below := range v {
			c.walk(o, below, append(slices.Clone(path), i)...)
		}
	}
}

// use returns the definition of a used kind if that definition is inactive.
func (c *coverage) use(apiVersion, kind string) (definition string, found bool) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return "", false
	}
	definition, found = c.inactive[schema.GroupKind{Group: gv.Group, Kind: kind}]
	return definition, found
}

func (c *coverage) say(o render.Object, definition string, at manifest.Origin) {
	c.found = append(c.found, manifest.Finding{
		Rule: RuleInactive, Severity: manifest.Warning, Origin: at,
		Message: fmt.Sprintf("%s uses %s, which no policy activates", c.home(o.ID), definition), Fix: c.fix(definition),
	})
}

// fix returns the line of a policy that would activate a definition. It prefers a policy of the commit for the same
// group, then the only policy. Policies of packages do not count, because the user cannot edit them.
func (c *coverage) fix(definition string) string {
	_, group, _ := strings.Cut(definition, ".")
	policies := slices.DeleteFunc(slices.Clone(c.want.Policies), func(p catalogue.Policy) bool {
		_, pulled := c.want.Within(p.Origin)
		return p.Paused || pulled
	})
	of := func(p catalogue.Policy) string {
		return fmt.Sprintf("add %q to spec.activate of policy %s (%s)", definition, p.Name, p.Origin)
	}
	for _, p := range policies {
		if slices.ContainsFunc(p.Patterns, func(pattern catalogue.Pattern) bool { return strings.HasSuffix(pattern.Glob, "."+group) }) {
			return of(p)
		}
	}
	if len(policies) == 1 {
		return of(policies[0])
	}
	return fmt.Sprintf("add %q to spec.activate of a policy", definition)
}
