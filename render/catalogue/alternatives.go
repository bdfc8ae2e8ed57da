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

// Alternatives are directories, or files of one directory, that declare the same: steps of a tutorial, examples, variants.
type alternatives struct {
	roots []string // in the order of the declarations; the first holds the declarations that count
	all   []twice
}

// declaredTwice returns the errors about second declarations. Directories that declare mostly the same objects are one error, about which
// of them to read. objects holds the number of objects in each file.
func declaredTwice(all []twice, objects map[string]int) Errors {
	slices.SortStableFunc(all, func(a, b twice) int { return a.first.Compare(b.first) })
	var groups []*alternatives
	for _, t := range all {
		g := groupOf(groups, t)
		if g == nil {
			g = &alternatives{}
			groups = append(groups, g)
		}
		g.add(t)
	}
	var problems Errors
	for _, g := range groups {
		for _, t := range g.separate(objects) {
			problems = append(problems, t.problem())
		}
		if g.names() > 1 {
			problems = append(problems, g.problem())
			continue
		}
		for _, t := range g.all {
			problems = append(problems, t.problem())
		}
	}
	return problems
}

// names returns the number of objects that the alternatives repeat.
func (g *alternatives) names() int {
	what := map[string]bool{}
	for _, t := range g.all {
		what[t.what] = true
	}
	return len(what)
}

// groupOf returns the alternatives that a second declaration belongs to, or nil.
func groupOf(groups []*alternatives, t twice) *alternatives {
	first, other := roots(t)
	for _, g := range groups {
		if first != other && slices.Contains(g.roots, first) && (slices.Contains(g.roots, other) || first == g.roots[0]) {
			return g
		}
	}
	return nil
}

func (g *alternatives) add(t twice) {
	first, other := roots(t)
	for _, root := range []string{first, other} {
		if !slices.Contains(g.roots, root) {
			g.roots = append(g.roots, root)
		}
	}
	g.all = append(g.all, t)
}

// roots returns the directories in which two declarations lie alike: "base" and "head" for base/config/a.yaml and head/config/b.yaml. Of
// one directory, it returns the files. The root is an alternative of another directory only file by file: the result is twice the same if it is none.
func roots(t twice) (first, other string) {
	one, two := t.first.Path, t.at.Path
	first, other = path.Dir(one), path.Dir(two)
	switch {
	case first == other:
		return one, two
	case (first == "." || other == ".") && path.Base(one) != path.Base(two):
		return one, one
	}
	for first != "." && other != "." && path.Base(first) == path.Base(other) {
		first, other = path.Dir(first), path.Dir(other)
	}
	return first, other
}

// several is the number of repeated objects that are no separate mistakes.
const several = 3

// separate removes and returns the declarations of roots that repeat few objects, and less than half of those of the smaller of the two.
// Such roots are no alternatives.
func (g *alternatives) separate(objects map[string]int) (separate []twice) {
	of := map[string][]twice{}
	for _, t := range g.all {
		_, other := roots(t)
		of[other] = append(of[other], t)
	}
	first, size := g.roots[0], map[string]int{}
	for root := range of {
		size[root] = g.size(root, objects)
	}
	for other, some := range of {
		if len(some) < several && 2*len(some) < min(g.size(first, objects), size[other]) {
			separate = append(separate, some...)
			g.roots = slices.DeleteFunc(g.roots, func(root string) bool { return root == other && root != first })
		}
	}
	g.all = slices.DeleteFunc(g.all, func(t twice) bool { return slices.Contains(separate, t) })
	slices.SortFunc(separate, func(a, b twice) int { return a.at.Compare(b.at) })
	return separate
}

// size returns the number of objects in a root, without those in the roots below it.
func (g *alternatives) size(root string, objects map[string]int) (n int) {
	for file, count := range objects {
		if deepest(g.roots, file) == root {
			n += count
		}
	}
	return n
}

// deepest returns the longest of some directories that holds a file, or "".
func deepest(roots []string, file string) (found string) {
	for _, root := range roots {
		if (root == "." || file == root || strings.HasPrefix(file, root+"/")) && (found == "" || found == "." || len(root) > len(found)) {
			found = root
		}
	}
	return found
}

// problem returns the error about alternatives.
func (g *alternatives) problem() Error {
	t, names := g.all[0], make([]string, len(g.roots))
	for i, root := range g.roots {
		names[i] = cmp.Or(strings.TrimPrefix(root, "."), "the root")
	}
	last := len(names) - 1
	e := Errorf(t.at, "%s and %s declare the same objects, %d in all; the first is %s at %s and %s: if they are alternatives, such as steps, examples or variants, read one of them with --path, or list the others in %s",
		strings.Join(names[:last], ", "), names[last], g.names(), t.what, t.first, t.at, ignoreFile)
	e.Again = true
	return e
}

// problem returns the error about a single declaration, which may be a variant in another directory.
func (t twice) problem() Error {
	how := "remove one of them"
	switch one, other := path.Dir(t.first.Path), path.Dir(t.at.Path); {
	case one != other:
		how = fmt.Sprintf("remove one of them; if %s and %s are variants, read one of them with --path, or list the other in %s", one, other, ignoreFile)
	case t.first.Path != t.at.Path:
		how = "remove one of them, or list its file in " + ignoreFile
	}
	e := Errorf(t.at, "%s is declared at %s already: %s", t.what, t.first, how)
	e.Again = true
	return e
}
