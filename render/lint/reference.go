package lint

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The rules of references between objects of a commit.
const (
	RuleNotThere  = "reference-not-there" // an object names another one that the commit does not declare
	RuleScope     = "scope-not-composed"  // a namespaced composite resource composes a cluster-scoped kind
	RulePolicy    = "deletion-policy"     // a namespaced managed resource has the field of the cluster-scoped kinds
	RuleImage     = "image-prefix"        // the prefix of an ImageConfig matches no image
	noSuchVersion = "version-not-served"  // the rule of render/check for objects
)

// A reference is a field of objects of one kind that names an object of another kind.
type reference struct {
	from func(*references, manifest.ID) bool
	path string // a * stands for each item of a list
	to   schema.GroupKind
}

// named holds who names what, by which field.
var named = []reference{
	{ofKind(crossplane.KindComposition), "spec.pipeline.*.functionRef.name", crossplane.KindFunction},
	{ofKind(crossplane.KindOperation), "spec.pipeline.*.functionRef.name", crossplane.KindFunction},
	{ofKind(crossplane.KindCronOperation), "spec.operationTemplate.spec.pipeline.*.functionRef.name", crossplane.KindFunction},
	{ofKind(crossplane.KindWatchOperation), "spec.operationTemplate.spec.pipeline.*.functionRef.name", crossplane.KindFunction},
	{ofKind(crossplane.KindXRD), "spec.defaultCompositionRef.name", crossplane.KindComposition},
	{ofKind(crossplane.KindXRD), "spec.enforcedCompositionRef.name", crossplane.KindComposition},
	{isComposite, "spec.compositionRef.name", crossplane.KindComposition},
	{isComposite, "spec.crossplane.compositionRef.name", crossplane.KindComposition},
	{ofKind(crossplane.KindProvider), "spec.runtimeConfigRef.name", crossplane.KindRuntimeConfig},
	{ofKind(crossplane.KindFunction), "spec.runtimeConfigRef.name", crossplane.KindRuntimeConfig},
}

func ofKind(gk schema.GroupKind) func(*references, manifest.ID) bool {
	return func(_ *references, id manifest.ID) bool { return id.GroupKind() == gk }
}

func isComposite(r *references, id manifest.ID) bool { return r.kinds[id.GroupKind()].composite }

// References finds objects that name what the commit does not declare, and references that cannot work. Where another source may
// declare the object, that is a note: the commit declares none of its kind, or a package that may bring it is not read. The findings
// are sorted.
func References(want render.Desired) []manifest.Finding {
	r := &references{want: want, home: render.HomesOf(want).Complete(), kinds: kindsOf(want), names: namesOf(want), absent: map[schema.GroupKind][]absent{}, space: map[manifest.ID]bool{}}
	for _, o := range want.Objects {
		r.space[r.home(o.ID)] = true
	}
	objects := slices.Clone(want.Objects)
	for _, l := range want.Left {
		if l.Composition != nil {
			objects = append(objects, *l.Composition)
		}
	}
	r.composes = composedKinds(objects)
	for _, o := range objects {
		r.object(o)
	}
	r.notKnown()
	for i, f := range r.found {
		r.found[i] = want.Placed(f)
	}
	slices.SortFunc(r.found, manifest.Finding.Compare)
	return slices.Compact(r.found)
}

type references struct {
	want  render.Desired
	home  func(manifest.ID) manifest.ID
	kinds map[schema.GroupKind]kind
	names map[schema.GroupKind][]string // of the objects that the commit declares, or that its packages bring
	space map[manifest.ID]bool          // the objects that the commit declares, with their namespaces

	composes map[schema.GroupKind]bool     // kinds that a Composition makes
	absent   map[schema.GroupKind][]absent // names of which it is not known whether they are there
	found    []manifest.Finding
}

// An absent is a reference to what may be declared elsewhere.
type absent struct {
	from manifest.ID
	what string // "names Function a"
	at   manifest.Origin
}

func (r *references) add(rule string, severity manifest.Severity, at manifest.Origin, about manifest.About, fix, format string, args ...any) {
	r.found = append(r.found, manifest.Finding{Rule: rule, Severity: severity, Origin: at, About: about, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// object finds what one object names.
func (r *references) object(o render.Object) {
	var fields []reference
	for _, one := range named {
		if one.from(r, o.ID) {
			fields = append(fields, one)
		}
	}
	managed := r.kinds[o.ID.GroupKind()].managed
	if len(fields) == 0 && !managed && !crossplane.IsImageConfig(o.ID) {
		return
	}
	content, err := o.Content()
	if err != nil {
		return // render reports it
	}
	for _, one := range fields {
		for _, at := range valuesAt(content.Object, nil, strings.Split(one.path, ".")) {
			r.name(o, one.to, at.text, at.path)
		}
	}
	switch {
	case managed:
		r.managed(o, content.Object)
	case crossplane.IsComposition(o.ID):
		r.composition(o, content.Object)
	case crossplane.IsImageConfig(o.ID):
		r.imageConfig(o, content.Object)
	}
}

// name judges one name.
func (r *references) name(o render.Object, to schema.GroupKind, name string, path []any) {
	there := r.names[to]
	switch {
	case name == "" || slices.Contains(there, name) || to == crossplane.KindRuntimeConfig && name == "default": // Crossplane creates it
	case len(there) == 0 || r.composes[to] || r.mayBring(to):
		r.absent[to] = append(r.absent[to], absent{o.ID, "names " + to.Kind + " " + name, o.OriginOf(path...)})
	default:
		r.missing(o, to, name, o.OriginOf(path...), manifest.Warning)
	}
}

func (r *references) missing(o render.Object, to schema.GroupKind, name string, at manifest.Origin, severity manifest.Severity) {
	fix := "declare it, or name one of " + some(r.names[to])
	if near := manifest.Meant(name, r.names[to]); near != "" {
		fix = "did you mean " + near + "?"
	} else if len(r.names[to]) == 1 {
		fix = "did you mean " + r.names[to][0] + ", the only one?"
	}
	r.add(RuleNotThere, severity, at, manifest.About{Object: o.ID, Subject: to.String() + " " + name}, fix, "%s names %s %s, which the commit does not declare", r.home(o.ID), to.Kind, name)
}

// some returns the first names of a list.
func some(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// mayBring reports whether a package that could not be read may bring objects of a kind. A Function brings none of them.
func (r *references) mayBring(to schema.GroupKind) bool {
	switch to {
	case crossplane.KindFunction, crossplane.KindComposition, crossplane.KindXRD:
	default:
		return false
	}
	return r.want.Unknown() > 0
}

// notKnown adds one note for each kind whose objects may be declared elsewhere.
func (r *references) notKnown() {
	for to, all := range r.absent {
		first := all[0]
		why := "the commit declares none"
		switch {
		case r.composes[to]:
			why = "a Composition makes such objects"
		case len(r.names[to]) > 0 || r.mayBring(to):
			why = "a package that may bring it could not be read"
		}
		text := fmt.Sprintf("%s %s, and whether it is there is not known: %s", r.home(first.from), first.what, why)
		if len(all) > 1 {
			text += fmt.Sprintf(" (%s like it)", manifest.Count(len(all)-1, "reference"))
		}
		r.add(RuleNotThere, manifest.Note, first.at, manifest.About{Subject: to.String()}, "", "%s", text)
	}
}

// A value is a text in an object, with its path.
type textAt struct {
	text string
	path []any
}

// valuesAt returns the texts at a path, of which a step * is each item of a list.
func valuesAt(v any, at []any, path []string) []textAt {
	if len(path) == 0 {
		text, _ := v.(string)
		return []textAt{{text, at}}
	}
	var all []textAt
	first, rest := path[0], path[1:]
	if first == "*" {
		items, _ := v.([]any)
		for i, item := range items {
			all = append(all, valuesAt(item, append(slices.Clone(at), i), rest)...)
		}
		return all
	}
	m, _ := v.(map[string]any)
	below, found := m[path[0]]
	if !found {
		return nil
	}
	return valuesAt(below, append(slices.Clone(at), path[0]), path[1:])
}
