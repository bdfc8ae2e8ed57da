package catalogue

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"headgate.dev/headgate/render/manifest"
)

// A Reading is a commit whose files were read, and that can be given packages which it only
// mentions. It is safe for concurrent use.
type Reading struct {
	how     Options
	locked  map[string]Locked
	roots   []root // objects that install packages
	configs *ImageConfigs

	mu     sync.Mutex
	walk   *walk                // what is changed is a copy
	images map[string]*contents // that were read, by what they are called and digest
}

// Open reads the files below root, as Read does. An error is that of options, or of a commit
// that is too large; all others are those of the Catalogue.
func Open(files fs.FS, root string, how Options) (*Reading, error) {
	w, err := newWalk(files, how)
	if err != nil {
		return nil, err
	}
	w.from(root)
	w.refuseUnread()
	w.build()
	w.read()
	if err := w.problems.tooMuch(cmp.Or(root, ".")); err != nil {
		return nil, err
	}
	w.unpack()
	locked, problems := w.readLocks()
	w.problems = append(w.problems, problems...)
	if how.Unlocked {
		locked = nil
	}
	r := &Reading{how: how, locked: locked, configs: &ImageConfigs{}, walk: w, images: map[string]*contents{}}
	r.roots = w.roots(r.configs)
	return r, nil
}

// Fits says whether other options would have read the same.
func (r *Reading) Fits(how Options) bool {
	mine := r.how
	mine.Memo, how.Memo = nil, nil
	return reflect.DeepEqual(mine, how)
}

// Missing are the packages that the commit mentions, itself or because of those that are held,
// and that are not held, by source. Of a commit that cannot be rendered nothing is missing.
// seen is what a cluster has.
func (r *Reading) Missing(held []Image, seen Seen) []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.walk.problems) > 0 {
		return nil
	}
	return r.resolve(held, seen).missing(held)
}

// Catalogue is what the commit declares, together with what the packages hold that it
// mentions. The error is as that of Read: what is wrong with a package is not wrong with the
// commit, but among what is Unread.
func (r *Reading) Catalogue(held []Image, seen Seen) (Catalogue, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held == nil {
		w := r.walk.again()
		return w.sorted()
	}
	resolved := r.resolve(held, seen)
	w := r.walk.again()
	w.findings = append(w.findings, resolved.findings(r.locked)...)
	pulled := map[string]*node{} // by the name of the image
	var beside []Beside
	for _, n := range resolved.nodes {
		if n.contents == nil || n.err != nil {
			continue
		}
		if n.copy != nil {
			if image, ok := r.beside(n.file(resolved)); ok {
				beside = append(beside, image)
			}
			continue
		}
		f := n.file(resolved)
		pulled[f.path] = n
		w.found = append(w.found, f)
		w.packages = append(w.packages, f.in)
		for _, found := range n.contents.findings {
			if found.Rule != RuleIncompatible || !slices.ContainsFunc(n.roots, func(r root) bool { return r.ignoresCrossplane }) {
				w.findings = append(w.findings, found)
			}
		}
	}
	c, problems := w.sort().catalogue()
	var own Errors
	for _, p := range problems {
		if n := pulled[imageOf(p.Origin, pulled)]; n != nil {
			n.err = errors.Join(n.err, p)
			continue
		}
		own = append(own, p)
	}
	c.Unread = resolved.unread()
	slices.SortFunc(beside, func(a, b Beside) int { return cmp.Compare(a.Package.Source, b.Package.Source) })
	c.Beside = beside
	return c, own.OrNil()
}

// beside sorts an image of which the tree has a copy. One with which anything is wrong is not known.
func (r *Reading) beside(image *file) (Beside, bool) {
	w := r.walk.again()
	w.found, w.packages = []*file{image}, []*Package{image.in}
	w.problems, w.findings, w.skipped, w.omitted, w.directories = nil, nil, Skipped{}, nil, map[string]bool{}
	c, problems := w.sort().catalogue()
	return Beside{Package: *image.in, Definitions: c.Definitions, Objects: c.Objects}, len(problems) == 0
}

// imageOf is the name of the image that a place is in.
func imageOf(at manifest.Origin, pulled map[string]*node) string {
	if _, ok := pulled[at.Path]; ok {
		return at.Path
	}
	return strings.TrimSuffix(at.Path, "/"+streamName)
}

// again is a walk that can be sorted and changed without changing this one.
func (w *walk) again() *walk {
	again := *w
	again.problems, again.findings, again.skipped = slices.Clone(w.problems), slices.Clone(w.findings), maps.Clone(w.skipped)
	again.omitted = slices.Clone(w.omitted)
	copies := map[*Package]*Package{}
	copied := func(p *Package) *Package {
		if p == nil {
			return nil
		}
		if copies[p] == nil {
			c := *p
			copies[p] = &c
		}
		return copies[p]
	}
	again.packages = make([]*Package, len(w.packages))
	for i, p := range w.packages {
		again.packages[i] = copied(p)
	}
	again.found = make([]*file, len(w.found))
	files := make([]file, len(w.found))
	for i, f := range w.found {
		files[i] = *f
		files[i].in = copied(f.in)
		again.found[i] = &files[i]
	}
	return &again
}

// contents are what was read of an image.
type contents struct {
	in        *Package // nil where it is no package
	documents []*manifest.Document
	findings  []manifest.Finding
	err       error
}

// contents reads an image, once.
func (r *Reading) contents(image Image) *contents {
	name := image.name()
	key := name + " " + image.Digest
	if known := r.images[key]; known != nil {
		return known
	}
	c := &contents{}
	r.images[key] = c
	w := *r.walk
	w.findings, w.problems = nil, nil
	c.documents, c.err = w.reader.Stream(manifest.Stream{Name: path.Join(name, streamName), Hash: image.Digest, Open: image.Open})
	if c.err != nil {
		return c
	}
	f := &file{path: name, image: true, documents: c.documents}
	problems := w.unpackImage(f)
	c.err = append(problems, w.problems...).OrNil()
	c.in, c.findings = f.in, w.findings
	return c
}
