package check

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// many combines sources.
type many []Source

// kind returns a kind from the first Source that holds it.
func (all many) kind(gk schema.GroupKind) (Kind, bool) {
	for _, s := range all {
		if kind, ok := s.Kind(gk); ok {
			return kind, true
		}
	}
	return nil, false
}

// knows returns how much the sources know of a group.
func (all many) knows(group string) Extent {
	most := None
	for _, s := range all {
		most = max(most, s.Knows(group))
	}
	return most
}

// kinds returns the kinds of a group that the sources know, sorted.
func (all many) kinds(group string) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, s := range all {
		kinds = append(kinds, s.Kinds(group)...)
	}
	slices.SortFunc(kinds, compareKinds)
	return slices.Compact(kinds)
}

// unknown judges an object whose kind no Source holds.
func (all many) unknown(o render.Object) result {
	r := all.misnamed(schema.FromAPIVersionAndKind(o.APIVersion, o.ID.Kind))
	for i, f := range r.findings {
		r.findings[i].Origin, r.findings[i].About.Object = o.OriginOf(f.Origin.Path), o.ID
	}
	return r
}

// misnamed judges a kind that no Source holds. The origin of a finding is only the field, apiVersion or kind.
func (all many) misnamed(gvk schema.GroupVersionKind) result {
	gk := gvk.GroupKind()
	kinds := all.kinds(gk.Group)
	f := manifest.Finding{Rule: RuleKind, Severity: manifest.Error, Origin: manifest.Origin{Path: "kind"}, About: manifest.About{Field: "kind", Subject: gk.String()}}
	f.Message = fmt.Sprintf("%s has no kind %s", groupName(gk.Group), gk.Kind)
	other := slices.IndexFunc(kinds, func(k schema.GroupKind) bool { return strings.EqualFold(k.Kind, gk.Kind) })
	near := nearest(gk.Kind, kinds)
	switch {
	case slices.Contains(kinds, gk):
		return result{omits: unusable}
	case other >= 0:
		f.Fix = fmt.Sprintf("write %s: upper and lower case count", kinds[other].Kind)
		return result{findings: []manifest.Finding{f}}
	case all.knows(gk.Group) == All:
		if advice, ok := all.advice(gvk); ok {
			f.Message += ": " + advice.Message
			f.Fix = advice.Fix
		} else if near != "" {
			f.Fix = fmt.Sprintf("did you mean %s?", near)
		}
		return result{findings: []manifest.Finding{f}}
	}
	return result{omits: NoSchema, findings: all.doubts(gvk, near)}
}

// doubts returns a warning if the kind or the group of an object may be a misspelling.
func (all many) doubts(gvk schema.GroupVersionKind, near string) []manifest.Finding {
	gk := gvk.GroupKind()
	doubt := func(field, fix, format string, args ...any) []manifest.Finding {
		message := fmt.Sprintf("nothing in this commit declares kind %s of %s", gk.Kind, groupName(gk.Group)) + fmt.Sprintf(format, args...)
		return []manifest.Finding{{Rule: RuleNear, Severity: manifest.Warning, Origin: manifest.Origin{Path: field}, About: manifest.About{Field: field, Subject: gk.String()}, Message: message, Fix: fix}}
	}
	if advice, ok := all.advice(gvk); ok {
		return doubt("apiVersion", advice.Fix, ": %s", advice.Message)
	}
	if near != "" {
		return doubt("kind", "correct the kind if you mean "+near, ", and %s is similar", near)
	}
	for _, s := range all {
		for _, group := range s.Groups() {
			if similar(gk.Group, group) && slices.Contains(s.Kinds(group), schema.GroupKind{Group: group, Kind: gk.Kind}) {
				return doubt("apiVersion", "correct the group if you mean "+groupName(group), ", and %s has a kind of that name", groupName(group))
			}
		}
	}
	return nil
}

// advice returns the first advice of a Source.
func (all many) advice(gvk schema.GroupVersionKind) (Advice, bool) {
	for _, s := range all {
		if adviser, ok := s.(Adviser); ok {
			if a, ok := adviser.Advise(gvk); ok {
				return a, true
			}
		}
	}
	return Advice{}, false
}

// nearest returns the kind that a name probably means, or "".
func nearest(name string, kinds []schema.GroupKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Kind
	}
	return manifest.Meant(name, names)
}

// similar reports whether a group may be a misspelling of another one.
func similar(group, other string) bool {
	return group != "" && other != "" && manifest.Meant(group, []string{other}) != ""
}
