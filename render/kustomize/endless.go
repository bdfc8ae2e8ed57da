package kustomize

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// endless returns an error if kustomize would loop forever over a file with schemas: it follows references without a limit. Other
// files have no references.
func endless(documents []*manifest.Document) error {
	for _, d := range documents {
		v, err := d.Value()
		if err != nil {
			return err
		}
		root, ok := v.(map[string]any)
		if !ok {
			continue
		}
		if err := circle(root); err != nil {
			return err
		}
		if err := (&typeGraph{root: root, paths: map[string]int{}}).check(); err != nil {
			return err
		}
	}
	return nil
}

// circle returns an error if references lead only to each other.
func circle(root map[string]any) error {
	refs := map[string]bool{}
	collect(root, refs)
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		seen := map[string]bool{}
		for next := ref; next != ""; {
			if seen[next] {
				return fmt.Errorf("the reference %s leads back to itself", ref)
			}
			seen[next] = true
			target, _ := pointed(root, next).(map[string]any)
			next, _ = target["$ref"].(string)
		}
	}
	return nil
}

// collect finds all references in a value.
func collect(value any, refs map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		if ref, ok := value["$ref"].(string); ok {
			refs[ref] = true
		}
		for _, v := range value {
			collect(v, refs)
		}
	case []any:
		for _, v := range value {
			collect(v, refs)
		}
	}
}

// pointed returns the value at the JSON pointer after the # of a reference.
func pointed(root any, ref string) any {
	_, pointer, _ := strings.Cut(ref, "#")
	value := root
	for step := range strings.SplitSeq(strings.Trim(pointer, "/"), "/") {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return value
}

// A typeGraph is a file of named types that refer to each other by name.
type typeGraph struct {
	root  map[string]any
	paths map[string]int // number of paths from a type; -1 while it is being counted
}

// mostPaths limits how often kustomize visits the types of a file.
const mostPaths = 100_000

func (g *typeGraph) check() error {
	for _, name := range slices.Sorted(maps.Keys(g.root)) {
		if _, err := g.count(name); err != nil {
			return err
		}
	}
	return nil
}

func (g *typeGraph) count(name string) (int, error) {
	if n, known := g.paths[name]; known {
		if n < 0 {
			return 0, fmt.Errorf("the type %s refers to itself", name)
		}
		return n, nil
	}
	g.paths[name] = -1
	refs := map[string]bool{}
	collect(g.root[name], refs)
	total := 1
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		if _, ok := g.root[ref]; !ok {
			continue
		}
		n, err := g.count(ref)
		if err != nil {
			return 0, err
		}
		if total += n; total > mostPaths {
			return 0, errors.New("its types refer to one another too often")
		}
	}
	g.paths[name] = total
	return total, nil
}
