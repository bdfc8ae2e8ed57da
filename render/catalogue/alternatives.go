package catalogue

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// A twice is a second declaration of something.
type twice struct {
	what      string
	at, first manifest.Origin
}

// Alternatives are two directories that declare the same: steps of a tutorial, examples, variants.
type alternatives struct {
	first, other string
	all          []twice
}

// declaredTwice returns the errors about second declarations. Two directories that declare several of the same objects are one error,
// about which of them to read.
func declaredTwice(all []twice) Errors {
	var groups []*alternatives
	for _, t := range all {
		first, other := roots(t)
		i := slices.IndexFunc(groups, func(g *alternatives) bool { return g.first == first && g.other == other && alike(t, first, other) })
		if i < 0 {
			i, groups = len(groups), append(groups, &alternatives{first: first, other: other})
		}
		groups[i].all = append(groups[i].all, t)
	}
	var problems Errors
	for _, g := range groups {
		problems = append(problems, g.problem())
	}
	return problems
}

// roots returns the directories in which two declarations lie alike: "base" and "head" for base/config/a.yaml and head/config/b.yaml.
func roots(t twice) (first, other string) {
	first, other = path.Dir(t.first.Path), path.Dir(t.at.Path)
	for first != other && first != "." && other != "." && path.Base(first) == path.Base(other) {
		first, other = path.Dir(first), path.Dir(other)
	}
	return first, other
}

// alike reports whether a second declaration may be one of an alternative. The root is one only file by file.
func alike(t twice, first, other string) bool {
	if first == "." || other == "." {
		return path.Base(t.first.Path) == path.Base(t.at.Path) && first != other
	}
	return first != other
}

// problem returns the error about alternatives, or about a single declaration.
func (g *alternatives) problem() Error {
	t := g.all[0]
	e := Errorf(t.at, "%s is declared at %s already: %s", t.what, t.first, howToChoose(t))
	if len(g.all) > 1 {
		e = Errorf(t.at, "%s and %s declare the same objects, %d in all; the first is %s at %s and %s: if they are alternatives, such as steps, examples or variants, read one of them with --path, or list the others in %s",
			root(g.first), root(g.other), len(g.all), t.what, t.first, t.at, ignoreFile)
	}
	e.Again = true
	return e
}

// root returns the name of a directory for a sentence.
func root(dir string) string { return cmp.Or(strings.TrimPrefix(dir, "."), "the root") }

// howToChoose returns the advice about one declaration, which may be a variant in another directory.
func howToChoose(t twice) string {
	switch one, other := path.Dir(t.first.Path), path.Dir(t.at.Path); {
	case one != other:
		return fmt.Sprintf("remove one of them; if %s and %s are variants, read one of them with --path, or list the other in %s", one, other, ignoreFile)
	case t.first.Path != t.at.Path:
		return "remove one of them, or list its file in " + ignoreFile
	}
	return "remove one of them"
}
