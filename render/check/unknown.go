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
	gk := o.ID.GroupKind()
	kinds := all.kinds(gk.Group)
	f := manifest.Finding{Rule: RuleKind, Severity: manifest.Error, Origin: o.OriginOf("kind")}
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
		if advice, ok := all.advice(o); ok {
			f.Message += ": " + advice.Message
			f.Fix = advice.Fix
		} else if near != "" {
			f.Fix = fmt.Sprintf("did you mean %s?", near)
		}
		return result{findings: []manifest.Finding{f}}
	}
	return result{omits: NoSchema, findings: all.doubts(o, near)}
}

// doubts returns a warning if the kind or the group of an object may be a misspelling.
func (all many) doubts(o render.Object, near string) []manifest.Finding {
	gk := o.ID.GroupKind()
	f := manifest.Finding{Rule: RuleNear, Severity: manifest.Warning}
	if advice, ok := all.advice(o); ok {
		f.Origin, f.Fix = o.OriginOf("apiVersion"), advice.Fix
		f.Message = fmt.Sprintf("nothing in this commit declares kind %s of %s: %s", gk.Kind, groupName(gk.Group), advice.Message)
		return []manifest.Finding{f}
	}
	if near != "" {
		f.Origin = o.OriginOf("kind")
		f.Message = fmt.Sprintf("nothing in this commit declares kind %s of %s, and %s is similar", gk.Kind, groupName(gk.Group), near)
		f.Fix = fmt.Sprintf("correct the kind if you mean %s", near)
		return []manifest.Finding{f}
	}
	for _, s := range all {
		for _, group := range s.Groups() {
			if !similar(gk.Group, group) || !slices.Contains(s.Kinds(group), schema.GroupKind{Group: group, Kind: gk.Kind}) {
				continue
			}
			f.Origin = o.OriginOf("apiVersion")
			f.Message = fmt.Sprintf("nothing in this commit declares kind %s of %s, and %s has a kind of that name", gk.Kind, groupName(gk.Group), groupName(group))
			f.Fix = fmt.Sprintf("correct the group if you mean %s", groupName(group))
			return []manifest.Finding{f}
		}
	}
	return nil
}

// advice returns the first advice of a Source.
func (all many) advice(o render.Object) (Advice, bool) {
	group, version, grouped := strings.Cut(o.APIVersion, "/")
	if !grouped {
		group, version = "", o.APIVersion
	}
	for _, s := range all {
		if adviser, ok := s.(Adviser); ok {
			if a, ok := adviser.Advise(schema.GroupVersionKind{Group: group, Version: version, Kind: o.ID.Kind}); ok {
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
