package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RuleComposed is the rule for parts of a Composition that make Crossplane compose an object which the API server refuses.
const RuleComposed = "composed-refused"

// A Composable is a Kind that checks what a Composition composes.
type Composable interface {
	Keyed
	// Base checks a base: what is wrong with it whatever patches add. It may change base.
	Base(base *unstructured.Unstructured) Result
	// Lacks reports whether the kind has no such field path, and why.
	Lacks(version, path string) (why string, lacks bool)
}

// NotPatched is what is not checked about a resource that a Composition composes.
const NotPatched = "required fields and rules"

// Compositions checks what Compositions compose with function-patch-and-transform. The omissions count the resources that they compose.
func Compositions(objects []render.Object, sources ...Source) (r Report) {
	all := many(sources)
	each := make([]Report, len(objects))
	manifest.Each(len(objects), func(i int) {
		if crossplane.IsComposition(objects[i].ID) {
			each[i] = all.composition(objects[i])
		}
	})
	for _, of := range each {
		r.Add(of)
	}
	return r
}

// composition checks one Composition.
func (all many) composition(o render.Object) (r Report) {
	content, err := o.Content()
	if err != nil {
		return r // render reports it
	}
	resources := composedBy(content)
	of, _ := all.composable(compositeOf(content))
	var found result
	keys := []string{keyOf(of)}
	for _, composed := range resources {
		kind, is := all.composedKind(o, composed)
		keys = append(keys, keyOf(kind))
		found.findings = append(found.findings, is.findings...)
		if is.omits != "" {
			r.omit(composed.kind().GroupKind(), is, true)
		}
	}
	problems, err := o.Learn("composition 2 "+strings.Join(keys, " "), func() (string, error) {
		var problems Result
		for _, composed := range resources {
			problems.add(all.composed(composed, of, compositeOf(content)))
		}
		raw, err := json.Marshal(problems)
		return string(raw), err
	})
	var known Result
	if err == nil && json.Unmarshal([]byte(problems), &known) == nil {
		found.place(o, RuleComposed, manifest.Error, cannotCompose, known.Errors)
		found.place(o, RuleComposed, manifest.Warning, "%s: %s", known.Warnings)
	}
	r.Findings = found.findings
	return r
}

const cannotCompose = "Crossplane cannot compose what %s describes: %s"

// compositeOf returns the kind of the composite resources of a Composition.
func compositeOf(composition *unstructured.Unstructured) schema.GroupVersionKind {
	ref := mapIn(composition.Object, "spec", "compositeTypeRef")
	return schema.FromAPIVersionAndKind(textIn(ref, "apiVersion"), textIn(ref, "kind"))
}

// keyOf identifies what the results of a kind depend on. kind may be nil.
func keyOf(kind Composable) string {
	if kind == nil {
		return "-"
	}
	return kind.Key()
}

// add adds the problems of another result.
func (r *Result) add(other Result) {
	r.Errors, r.Warnings = append(r.Errors, other.Errors...), append(r.Warnings, other.Warnings...)
}

// composable returns a kind that is known in a version which is served.
func (all many) composable(gvk schema.GroupVersionKind) (Composable, bool) {
	kind, known := all.kind(gvk.GroupKind())
	if !known || !slices.Contains(kind.Versions(), gvk.Version) {
		return nil, false
	}
	of, ok := kind.(Composable)
	return of, ok
}

// composedKind returns the kind of a resource, and what is wrong with the kind or not checked.
func (all many) composedKind(o render.Object, c composed) (kind Composable, r result) {
	gvk := c.kind()
	if gvk.Kind == "" || textIn(c.base, "apiVersion") == "" || c.choosesKind() {
		return nil, result{} // another step of the pipeline, or a patch, sets it
	}
	known, ok := all.kind(gvk.GroupKind())
	switch {
	case gvk.Version == "":
		r = malformed(textIn(c.base, "apiVersion"))
	case !ok:
		r = all.misnamed(gvk)
	case !slices.Contains(known.Versions(), gvk.Version):
		r = unserved(gvk, known)
	default:
		if kind, ok = known.(Composable); ok {
			return kind, result{omits: NotPatched, partly: true}
		}
		return nil, result{omits: "fields of " + gvk.Kind}
	}
	for i := range r.findings {
		f := &r.findings[i]
		field := c.at + ".base." + f.Origin.Path
		f.Rule, f.Origin, f.About.Object, f.About.Field = RuleComposed, Place(o, field), o.ID, field
		if f.Severity == manifest.Error {
			f.Message = fmt.Sprintf(cannotCompose, o.ID, field+": "+f.Message)
		} else {
			f.Message = fmt.Sprintf("%s: %s: %s", o.ID, field, f.Message)
		}
	}
	return nil, r
}

// malformed judges an apiVersion that no kind can have. The origin of the finding is only the field.
func malformed(apiVersion string) result {
	return result{findings: []manifest.Finding{{
		Rule: RuleVersion, Severity: manifest.Error, Origin: manifest.Origin{Path: "apiVersion"}, About: manifest.About{Field: "apiVersion", Subject: apiVersion},
		Message: fmt.Sprintf("%q is no apiVersion", apiVersion), Fix: "write GROUP/VERSION",
	}}}
}

// choosesKind reports whether a patch sets the kind of the resource.
func (c composed) choosesKind() bool {
	return slices.ContainsFunc(c.writes(), func(path string) bool { return path == "apiVersion" || path == "kind" })
}

// composed checks one resource of a Composition. of is the kind of its composite resources, or nil.
func (all many) composed(c composed, of Composable, composites schema.GroupVersionKind) (found Result) {
	if of != nil {
		c.accesses(composite, func(a access, p patch, writes bool) {
			found.access(of, composites, a, p.required || writes)
		})
	}
	kind, ok := all.composable(c.kind())
	if !ok || c.choosesKind() {
		return found
	}
	c.accesses(resource, func(a access, p patch, writes bool) {
		if !writes || firstOf(a.path) != "status" { // Crossplane does not write a status
			found.access(kind, c.kind(), a, p.required || writes)
		}
	})
	base := (&unstructured.Unstructured{Object: c.base}).DeepCopy()
	wrong := kind.Base(base)
	found.add(Result{Errors: c.unpatched(wrong.Errors), Warnings: c.unpatched(wrong.Warnings)})
	return found
}

// unpatched returns the problems of a base that no patch may solve, with their fields in the Composition.
func (c composed) unpatched(problems []Problem) (all []Problem) {
	for _, p := range problems {
		if !slices.ContainsFunc(c.writes(), func(path string) bool { return overlap(path, p.Field) }) {
			all = append(all, Problem{Field: strings.TrimSuffix(c.at+".base."+p.Field, "."), Message: p.Message})
		}
	}
	return all
}

// access checks a field that a patch reads or writes. If the patch does not need the field, it never does anything.
func (r *Result) access(kind Composable, gvk schema.GroupVersionKind, a access, needed bool) {
	why, lacks := kind.Lacks(gvk.Version, a.path)
	if !lacks {
		return
	}
	if needed {
		r.Errors = append(r.Errors, Problem{a.at, fmt.Sprintf("%s has no field %s: %s", gvk.Kind, a.path, why)})
		return
	}
	r.Warnings = append(r.Warnings, Problem{a.at, fmt.Sprintf("%s has no field %s, so the patch never does anything: %s", gvk.Kind, a.path, why)})
}
