package check

import (
	"fmt"
	"strings"

	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A composed is a resource that a Composition composes with function-patch-and-transform: a base, and the patches of it.
type composed struct {
	at      string // its path in the Composition
	base    map[string]any
	patches []patch
}

func (c composed) kind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(textIn(c.base, "apiVersion"), textIn(c.base, "kind"))
}

// writes returns the field paths of the resource that patches write.
func (c composed) writes() (paths []string) {
	for _, p := range c.patches {
		if p.to.side == resource {
			paths = append(paths, p.to.path)
		}
	}
	return paths
}

// A side is an object that patches read or write.
type side string

const (
	composite   side = "composite"   // the composite resource
	resource    side = "resource"    // the composed resource
	environment side = "environment" // it has no schema
)

// A patch copies the values of some fields to another field.
type patch struct {
	from     []access
	to       access
	required bool // the pipeline fails if a field that it reads is not there
}

// An access is a field that a patch reads or writes.
type access struct {
	side side
	at   string // the path of the field path in the Composition
	path string // the field path
}

// directions holds what the types of patches of a resource read and write.
var directions = map[string]struct{ from, to side }{
	"":                         {composite, resource},
	"FromCompositeFieldPath":   {composite, resource},
	"CombineFromComposite":     {composite, resource},
	"ToCompositeFieldPath":     {resource, composite},
	"CombineToComposite":       {resource, composite},
	"FromEnvironmentFieldPath": {environment, resource},
	"CombineFromEnvironment":   {environment, resource},
	"ToEnvironmentFieldPath":   {resource, environment},
	"CombineToEnvironment":     {resource, environment},
}

// composedBy returns the resources of a Composition that function-patch-and-transform composes. Patches of the environment belong to a
// resource without a base.
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
		all = append(all, composed{at: at, patches: ofEnvironment(patchesIn(mapIn(input, "environment"), at+".environment", nil))})
		for j, v := range listIn(input, "resources") {
			place := fmt.Sprintf("%s.resources[%d]", at, j)
			all = append(all, composed{at: place, base: mapIn(v, "base"), patches: patchesIn(v, place, sets)})
		}
	}
	return all
}

// ofEnvironment returns patches for which the environment is the resource.
func ofEnvironment(patches []patch) []patch {
	for i := range patches {
		p := &patches[i]
		for _, a := range append(pointers(p.from), &p.to) {
			if a.side == resource {
				a.side = environment
			}
		}
	}
	return patches
}

func pointers[T any](values []T) []*T {
	all := make([]*T, len(values))
	for i := range values {
		all[i] = &values[i]
	}
	return all
}

// patchesIn returns the patches of a resource or a set.
func patchesIn(of any, at string, sets map[string][]patch) (all []patch) {
	for i, p := range listIn(of, "patches") {
		kind := textIn(p, "type")
		if kind == "PatchSet" {
			all = append(all, sets[textIn(p, "patchSetName")]...)
			continue
		}
		if of, known := directions[kind]; known {
			all = append(all, patchOf(p, fmt.Sprintf("%s.patches[%d]", at, i), of.from, of.to))
		}
	}
	return all
}

// patchOf returns a patch. A patch of one field writes the field of the same name, unless it names another one.
func patchOf(p any, at string, from, to side) patch {
	made := patch{required: textIn(mapIn(p, "policy"), "fromFieldPath") == "Required"}
	read := func(v any, at string) {
		if path := textIn(v, "fromFieldPath"); path != "" {
			made.from = append(made.from, access{from, at + ".fromFieldPath", path})
		}
	}
	read(p, at)
	for i, v := range listIn(p, "combine", "variables") {
		read(v, fmt.Sprintf("%s.combine.variables[%d]", at, i))
	}
	switch path := textIn(p, "toFieldPath"); {
	case path != "":
		made.to = access{to, at + ".toFieldPath", path}
	case textIn(p, "fromFieldPath") != "":
		made.to = access{to, at + ".fromFieldPath", textIn(p, "fromFieldPath")}
	}
	return made
}

// accesses returns the fields of one side that the patches of a resource read or write.
func (c composed) accesses(of side, use func(a access, p patch, writes bool)) {
	for _, p := range c.patches {
		for _, a := range p.from {
			if a.side == of {
				use(a, p, false)
			}
		}
		if p.to.side == of {
			use(p.to, p, true)
		}
	}
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

// firstOf returns the first field of a field path.
func firstOf(path string) string {
	first, _, _ := strings.Cut(path, ".")
	first, _, _ = strings.Cut(first, "[")
	return first
}
