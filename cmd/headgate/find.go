package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"headgate.dev/headgate/render"
)

// find returns the definition that name refers to: by its full name, or else by the beginning of its name, its plural or its kind.
// Only one definition may match.
func find(definitions []render.DecidedDefinition, name string) (render.DecidedDefinition, error) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	var fits []render.DecidedDefinition
	for _, d := range definitions {
		switch {
		case d.Name == name:
			return d, nil
		case d.Plural == name, strings.ToLower(d.Kind) == name, strings.HasPrefix(d.Name, name+"."):
			fits = append(fits, d)
		}
	}
	if len(fits) == 0 {
		for _, d := range definitions {
			if strings.HasPrefix(d.Name, name) {
				fits = append(fits, d)
			}
		}
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		return render.DecidedDefinition{}, ambiguousError(fmt.Sprintf("%q matches %d definitions; name one of them: %s", name, len(fits), some(names(fits))))
	case len(definitions) == 0:
		return render.DecidedDefinition{}, fmt.Errorf("the commit declares no definition at all; is the path right?")
	}
	return render.DecidedDefinition{}, fmt.Errorf("the commit declares no definition %q; the nearest are %s", name, some(nearest(names(definitions), name)))
}

// An ambiguousError means that several definitions have a name. Every one of them was read.
type ambiguousError string

func (e ambiguousError) Error() string { return string(e) }

func names(definitions []render.DecidedDefinition) []string {
	all := make([]string, 0, len(definitions))
	for _, d := range definitions {
		all = append(all, d.Name)
	}
	return all
}

// some returns the first five names and the number of all others.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// nearest returns the three names with the least edit distance to meant. It compares plurals if meant has no group.
func nearest(names []string, meant string) []string {
	far := make(map[string]int, len(names))
	for _, n := range names {
		plural, _, _ := strings.Cut(n, ".")
		far[n] = levenshtein.Distance(n, meant, nil)
		if !strings.Contains(meant, ".") {
			far[n] = levenshtein.Distance(plural, meant, nil)
		}
	}
	sorted := slices.SortedFunc(slices.Values(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(far[a], far[b]), strings.Compare(a, b))
	})
	return sorted[:min(len(sorted), 3)]
}
