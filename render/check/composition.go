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
	// Base returns why the API server refuses a base, whatever patches add to it. writes holds the field paths that patches write:
	// what is wrong there may not stay. Base may change base.
	Base(base *unstructured.Unstructured, writes []string) []Problem
	// Lacks reports whether the kind has no such field path, and why.
	Lacks(version, path string) (why string, lacks bool)
}

// Compositions checks what Compositions compose with function-patch-and-transform. The findings are sorted.
func Compositions(objects []render.Object, sources ...Source) []manifest.Finding {
	all := many(sources)
	found := make([][]manifest.Finding, len(objects))
	manifest.Each(len(objects), func(i int) {
		if crossplane.IsComposition(objects[i].ID) {
			found[i] = all.composition(objects[i])
		}
	})
	joined := slices.Concat(found...)
	slices.SortFunc(joined, manifest.Finding.Compare)
	return joined
}

// composition checks one Composition.
func (all many) composition(o render.Object) []manifest.Finding {
	content, err := o.Content()
	if err != nil {
		return nil // render reports it
	}
	resources := composedBy(content)
	keys := make([]string, len(resources))
	for i, r := range resources {
		if kind, ok := all.composable(r); ok {
			keys[i] = kind.Key()
		}
	}
	known, err := o.Learn("composition 1 "+strings.Join(keys, " "), func() (string, error) {
		var found []Problem
		for _, r := range resources {
			found = append(found, all.composed(r)...)
		}
		raw, err := json.Marshal(found)
		return string(raw), err
	})
	var problems []Problem
	if err != nil || json.Unmarshal([]byte(known), &problems) != nil {
		return nil
	}
	var r result
	r.place(o, RuleComposed, manifest.Error, "Crossplane cannot compose what %s describes: %s", problems)
	return r.findings
}

// A composed is a resource of a Composition: a base, and the patches of it.
type composed struct {
	at      string // its path in the Composition
	base    map[string]any
	patches []patch
}

// A patch writes a field of a composed resource.
type patch struct {
	at string // the path of its field in the Composition
	to string // the field path that it writes
}

func (r composed) kind() schema.GroupVersionKind {
	version, _ := r.base["apiVersion"].(string)
	kind, _ := r.base["kind"].(string)
	return schema.FromAPIVersionAndKind(version, kind)
}

// composable returns the kind of a resource, if its version is served.
func (all many) composable(r composed) (Composable, bool) {
	gvk := r.kind()
	kind, known := all.kind(gvk.GroupKind())
	if !known || !slices.Contains(kind.Versions(), gvk.Version) {
		return nil, false
	}
	of, ok := kind.(Composable)
	return of, ok
}

// composed checks one resource of a Composition.
func (all many) composed(r composed) (found []Problem) {
	kind, ok := all.composable(r)
	if !ok {
		return nil // another check reports a version that is not served
	}
	var writes []string
	for _, p := range r.patches {
		if why, lacks := kind.Lacks(r.kind().Version, p.to); lacks {
			found = append(found, Problem{Field: p.at, Message: fmt.Sprintf("%s has no field %s: %s", r.kind().Kind, p.to, why)})
		}
		writes = append(writes, p.to)
	}
	base := &unstructured.Unstructured{Object: r.base}
	for _, p := range kind.Base(base.DeepCopy(), writes) {
		found = append(found, Problem{Field: strings.TrimSuffix(r.at+".base."+p.Field, "."), Message: p.Message})
	}
	return found
}

// composedBy returns the resources of a Composition that functions of the kind of patch and transform compose.
func composedBy(composition *unstructured.Unstructured) (all []composed) {
	for i, step := range listIn(composition.Object, "spec", "pipeline") {
		input := mapIn(step, "input")
		group, _, _ := strings.Cut(textIn(input, "apiVersion"), "/")
		if group != crossplane.Composing || input["kind"] != "Resources" {
			continue
		}
		at := fmt.Sprintf("spec.pipeline[%d].input", i)
		sets := map[string][]patch{}
		for j, set := range listIn(input, "patchSets") {
			sets[textIn(set, "name")] = patchesIn(set, fmt.Sprintf("%s.patchSets[%d]", at, j), nil)
		}
		for j, v := range listIn(input, "resources") {
			if base := mapIn(v, "base"); base != nil {
				place := fmt.Sprintf("%s.resources[%d]", at, j)
				all = append(all, composed{at: place, base: base, patches: patchesIn(v, place, sets)})
			}
		}
	}
	return all
}

// patchesIn returns the patches of a resource or a set that write fields of a composed resource.
func patchesIn(of any, at string, sets map[string][]patch) (all []patch) {
	for i, p := range listIn(of, "patches") {
		key, to := "toFieldPath", textIn(p, "toFieldPath")
		switch textIn(p, "type") {
		case "PatchSet":
			all = append(all, sets[textIn(p, "patchSetName")]...)
			continue
		case "", "FromCompositeFieldPath", "FromEnvironmentFieldPath":
			if to == "" {
				key, to = "fromFieldPath", textIn(p, "fromFieldPath")
			}
		case "CombineFromComposite", "CombineFromEnvironment":
		default:
			continue // it writes the composite resource or the environment
		}
		if to != "" {
			all = append(all, patch{fmt.Sprintf("%s.patches[%d].%s", at, i, key), to})
		}
	}
	return all
}

func mapIn(v any, path ...string) map[string]any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	m, _ := v.(map[string]any)
	return m
}

func listIn(v any, path ...string) []any {
	last := len(path) - 1
	list, _ := mapIn(v, path[:last]...)[path[last]].([]any)
	return list
}

func textIn(v any, key string) string {
	text, _ := mapIn(v)[key].(string)
	return text
}
