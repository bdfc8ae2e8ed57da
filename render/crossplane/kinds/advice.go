package kinds

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/crossplane"

	"github.com/agext/levenshtein"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Advise returns which kind of Crossplane an object of an unknown kind probably is: one with that name, its plural or its short name
// in another group, or with a similar name in a group of Crossplane.
func (s *Source) Advise(gvk schema.GroupVersionKind) (check.Advice, bool) {
	if a, ok := retired[gvk.GroupKind()]; ok {
		return a, true
	}
	r := s.load()
	for _, group := range s.byNearness(gvk.Group) {
		for _, gk := range r.groups[group] {
			if k := r.kinds[gk]; k.names.are(gvk.Kind) && (resembles(gvk.Group, group) || isDistinctive(gk.Kind)) {
				return advice(gvk, gk, k), true
			}
		}
	}
	return check.Advice{}, false
}

// byNearness returns the groups of Crossplane, those that are similar to another group first: two of them have a Usage.
func (s *Source) byNearness(group string) []string {
	groups := s.Groups()
	slices.SortStableFunc(groups, func(a, b string) int { return distance(a, group) - distance(b, group) })
	return groups
}

func advice(gvk schema.GroupVersionKind, gk schema.GroupKind, k kind) check.Advice {
	version := k.Versions()[0]
	if isVersioned(gk) {
		version = crossplane.MRDVersion // every release serves it
	}
	a := check.Advice{
		Message: fmt.Sprintf("%s is a kind of %s/%s, so this object %s", gk.Kind, gk.Group, version, effect(gk)),
		Fix:     fmt.Sprintf("write apiVersion: %s/%s", gk.Group, version),
	}
	if gvk.Kind != gk.Kind {
		a.Fix += ", kind: " + gk.Kind
	}
	return a
}

// effect returns what an object does not do if its group or kind is wrong.
func effect(gk schema.GroupKind) string {
	switch {
	case gk == crossplane.KindMRAP:
		return "activates nothing"
	case gk == crossplane.KindMRD, gk == crossplane.KindXRD:
		return "defines nothing"
	case crossplane.Installs(gk.Group, gk.Kind):
		return "installs nothing"
	}
	return "has no effect"
}

// retired are kinds of Crossplane v1 without a successor of the same name.
var retired = map[schema.GroupKind]check.Advice{
	{Group: crossplane.Packages, Kind: "ControllerConfig"}: {
		Message: "Crossplane v2 removed it",
		Fix:     "write a " + crossplane.KindRuntimeConfig.Kind + ", and name it in runtimeConfigRef",
	},
	{Group: crossplane.Secrets, Kind: "StoreConfig"}: {
		Message: "Crossplane v2 removed it, with all external secret stores",
		Fix:     "remove it",
	},
}

// are reports whether a user who writes the text means the kind with these names.
func (n names) are(text string) bool {
	return strings.EqualFold(text, n.Kind) || strings.EqualFold(text, n.Plural) || slices.Contains(n.ShortNames, strings.ToLower(text))
}

// isDistinctive reports whether the name of a kind alone shows that a user means Crossplane's: it has several words. Others also have a
// Provider or a Configuration.
func isDistinctive(kind string) bool {
	return strings.IndexFunc(kind[1:], unicode.IsUpper) >= 0
}

// resembles reports whether a user may have written a group instead of one of Crossplane's: another one of Crossplane's, a misspelt
// one, its first part in another domain, or only the domain.
func resembles(group, own string) bool {
	first, domain, _ := strings.Cut(own, ".")
	begins, ends, _ := strings.Cut(group, ".")
	switch {
	case crossplane.Serves(group), group == domain, group == first, distance(group, own) <= 2:
		return true
	case distance(begins, first) > len(first)/4:
		return false
	}
	return ends == domain || strings.Contains(ends, "crossplane") || strings.HasSuffix(ends, "upbound.io")
}

func distance(a, b string) int { return levenshtein.Distance(a, b, nil) }
