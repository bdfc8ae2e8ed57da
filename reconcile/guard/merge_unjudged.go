package guard

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/impact"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unjudged asks to look at every change of an object of which no guard knows that it affects nothing.
func unjudged(c draft.Case) func(plan.Step) plan.Ruling {
	reads := readersOf(c)
	return func(s plan.Step) plan.Ruling {
		if isInactive(s) {
			return allowed
		}
		return ofFields(s, reads)
	}
}

// unjudgedOfPackages does the same for definitions that Crossplane installs with packages.
func unjudgedOfPackages(s plan.Step, _ draft.Case) plan.Ruling {
	if isInactive(s) {
		return allowed
	}
	return ofFields(s, func(string) bool { return false })
}

// isInactive reports whether a step concerns a definition of which no API serves objects.
func isInactive(s plan.Step) bool {
	return crossplane.DeclaresKind(s.ID) && !crossplane.IsXRD(s.ID) && !s.Serves
}

func ofFields(s plan.Step, reads func(key string) bool) plan.Ruling {
	if !applied(s) || s.Action != plan.Update {
		return allowed
	}
	changes := slices.DeleteFunc(fieldsOf(s), func(f diff.Change) bool { return isJudged(s, f) || isUnread(s, f, reads) })
	if len(changes) == 0 {
		return allowed
	}
	first := changes[0]
	return looks(reason.NotJudged.With(s.ID, first, len(changes)-1))
}

// The fields under which labels and annotations stand.
const (
	labels      = "metadata.labels"
	annotations = "metadata.annotations"
)

// fieldsOf returns the fields that an update changes, with each label and annotation as a field.
func fieldsOf(s plan.Step) []diff.Change {
	changes := slices.DeleteFunc(s.Changes(), func(f diff.Change) bool {
		return isAt(f.Path, labels) || isAt(f.Path, annotations)
	})
	if s.Live == nil || s.After == nil {
		return changes
	}
	for _, m := range changedMarks(s.Live, s.After) {
		changes = append(changes, diff.Change{Path: m.under + "." + m.key})
	}
	slices.SortStableFunc(changes, func(a, b diff.Change) int { return cmp.Compare(rank(a), rank(b)) })
	return changes
}

// rank orders fields: those that a person looks for first.
func rank(f diff.Change) int {
	switch {
	case strings.HasSuffix(f.Path, "image"):
		return 0
	case strings.HasPrefix(f.Path, "metadata."):
		return 2
	}
	return 1
}

func isAt(path, field string) bool { return path == field || strings.HasPrefix(path, field+".") }

// judgedFields are the fields that other guards judge, or that only describe, by the kind of the object.
var judgedFields = []struct {
	of     func(manifest.ID) bool
	fields []string
}{
	{crossplane.DeclaresKind, []string{"spec.versions", "spec.state", "spec.names.shortNames", "spec.names.categories"}},
	{crossplane.IsMRAP, []string{"spec.activate"}},
	{crossplane.IsPackage, []string{"spec.package"}},
	{impact.IsRole, []string{"rules"}},
	{impact.IsBinding, []string{"subjects"}},
}

func isJudged(s plan.Step, f diff.Change) bool {
	for _, of := range judgedFields {
		if of.of(s.ID) && slices.ContainsFunc(of.fields, func(field string) bool { return isAt(f.Path, field) || strings.HasPrefix(f.Path, field+"[") }) {
			return true
		}
	}
	return false
}

// isUnread reports whether a change concerns a label or an annotation that nothing reads.
func isUnread(s plan.Step, f diff.Change, reads func(key string) bool) bool {
	for _, under := range []string{labels, annotations} {
		if key, is := strings.CutPrefix(f.Path, under+"."); is {
			selects := under == labels && impact.IsSelected(s.ID.GroupKind())
			return impact.Reader(key) == "" && !selects && !reads(key)
		}
	}
	return false
}

// readersOf returns a function that reports whether an object of either commit mentions a key outside of its metadata, as a selector,
// a patch or a template does.
func readersOf(c draft.Case) func(key string) bool {
	known := map[string]bool{}
	return func(key string) bool {
		is, asked := known[key]
		if !asked {
			is = slices.ContainsFunc(slices.Concat(baseOf(c).Objects, c.Want.Objects), func(o render.Object) bool { return mentions(o, key) })
			known[key] = is
		}
		return is
	}
}

// mentions reports whether an object mentions a key outside of its metadata, or cannot be read.
func mentions(o render.Object, key string) bool {
	if crossplane.DeclaresKind(o.ID) { // a schema selects nothing
		return false
	}
	if raw, err := o.JSON(); err == nil && !bytes.Contains(raw, []byte(key)) {
		return false
	}
	content, err := o.Content()
	if err != nil {
		return true
	}
	delete(content.Object, "metadata")
	raw, err := content.MarshalJSON()
	return err != nil || hasWord(string(raw), key)
}

// hasWord reports whether a text contains a key that is no part of a longer one.
func hasWord(text, key string) bool {
	for before, after, found := strings.Cut(text, key); found; before, after, found = strings.Cut(after, key) {
		if !continues(before, -1) && !continues(after, 0) {
			return true
		}
	}
	return false
}

// nameCharacters are the characters of which keys consist, without the full stop, which also ends a sentence or begins a path.
const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/"

// continues reports whether the first or the last character of a text may be a part of a name.
func continues(text string, at int) bool {
	if text == "" {
		return false
	}
	return strings.IndexByte(nameCharacters, text[(len(text)+at)%len(text)]) >= 0
}

// A mark is a label or an annotation.
type mark struct{ under, key string }

func marksOf(u *unstructured.Unstructured) map[mark]string {
	all := map[mark]string{}
	for key, value := range u.GetLabels() {
		all[mark{labels, key}] = value
	}
	for key, value := range u.GetAnnotations() {
		all[mark{annotations, key}] = value
	}
	return all
}

// changedMarks returns the labels and annotations that differ, by key.
func changedMarks(before, after *unstructured.Unstructured) []mark {
	was, is := marksOf(before), marksOf(after)
	either := maps.Clone(was)
	maps.Copy(either, is)
	maps.DeleteFunc(either, func(m mark, _ string) bool {
		from, had := was[m]
		to, has := is[m]
		return had == has && from == to
	})
	return slices.SortedFunc(maps.Keys(either), mark.compare)
}

func (m mark) compare(other mark) int {
	return cmp.Or(cmp.Compare(m.key, other.key), cmp.Compare(m.under, other.under))
}

// contents returns the object of a create or an update before and after it. before is nil for a create. changes is false for every
// other step, and if the object cannot be read.
func contents(s plan.Step) (before, after *unstructured.Unstructured, changes bool) {
	switch s.Action {
	case plan.Create:
		after, err := s.Object()
		return nil, after, err == nil
	case plan.Update:
		return s.Live, s.After, s.Live != nil && s.After != nil
	}
	return nil, nil, false
}
