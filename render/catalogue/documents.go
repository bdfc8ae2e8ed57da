package catalogue

import (
	"cmp"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"

	"headgate.dev/headgate/render/manifest"
)

// Documents are the documents of a commit, before they are sorted. No method changes them, so they are safe for concurrent use.
type Documents struct{ walk *walk }

// Open reads every .yaml, .yml and .json file below root, which is a directory or a file of the commit; "" and "." are
// all of it. In a directory with a kustomization, it reads the output of kustomize instead. Files must be safe for
// concurrent use. Bodies of definitions stay undecoded.
//
// It returns an error for invalid options, and one of type Errors for a commit that is too large. All other errors are in the
// Catalogue.
func Open(files fs.FS, root string, how Options) (Documents, error) {
	w, err := newWalk(files, how)
	if err != nil {
		return Documents{}, err
	}
	w.from(root)
	if w.seen.exceeded { // the files found until then depend on chance
		return Documents{}, w.problems[len(w.problems)-1:].OrNil()
	}
	w.refuseUnread()
	w.build()
	w.read()
	if err := w.problems.tooMuch(cmp.Or(root, ".")); err != nil {
		return Documents{}, err
	}
	w.unpack()
	return Documents{w}, nil
}

// All returns every document in the order of reading, with its package or nil. The caller must not change either.
func (d Documents) All() iter.Seq2[*manifest.Document, *Package] {
	return func(yield func(*manifest.Document, *Package) bool) {
		for _, f := range d.walk.found {
			for _, document := range f.documents {
				if !yield(document, f.in) {
					return
				}
			}
		}
	}
}

// Applies reports whether a document outside of packages is an object to apply.
func (d Documents) Applies(document *manifest.Document) bool {
	what, _ := d.walk.fateOf(document.Header, nil)
	return what == apply
}

// Packages returns the packages of the tree. The caller must not change them.
func (d Documents) Packages() []*Package { return d.walk.packages }

// Problems returns the errors of the commit that were found before sorting its documents.
func (d Documents) Problems() Errors { return slices.Clone(d.walk.problems) }

// A Pulled package comes from a registry.
type Pulled struct {
	Package   *Package // nil if the package could not be read
	Documents []*manifest.Document
	Findings  []manifest.Finding
}

// Pull reads the YAML of a package in an image. Its content counts towards the limits of the commit. A Memo identifies the content
// by hash.
func (d Documents) Pull(name, hash string, open func() (io.ReadCloser, error)) (Pulled, error) {
	documents, err := d.walk.reader.Stream(manifest.Stream{Name: path.Join(name, StreamName), Hash: hash, Open: open})
	if err != nil {
		return Pulled{}, err
	}
	w := *d.walk
	w.findings, w.problems = nil, nil
	f := &file{path: name, image: true, documents: documents}
	problems := append(w.unpackImage(f), w.problems...)
	return Pulled{Package: f.in, Documents: documents, Findings: w.findings}, problems.OrNil()
}

// Catalogue sorts the documents, together with those of pulled packages, and returns all errors in them.
func (d Documents) Catalogue(pulled ...Pulled) (Catalogue, Errors) {
	w := d.walk.again()
	for _, p := range pulled {
		w.add(p)
	}
	return w.sort().catalogue()
}

// Sort sorts the documents of one pulled package. ok is false if they contain an error.
func (d Documents) Sort(pulled Pulled) (definitions []*Definition, objects []manifest.Object, ok bool) {
	w := *d.walk
	w.found, w.packages = nil, nil
	w.problems, w.findings, w.skipped, w.omitted, w.directories = nil, nil, Skipped{}, nil, map[string]bool{}
	w.add(pulled)
	c, problems := w.sort().catalogue()
	return c.Definitions, c.Objects, len(problems) == 0
}

// add adds the documents of a package.
func (w *walk) add(p Pulled) {
	in := *p.Package
	w.found = append(w.found, &file{path: in.Directory, in: &in, image: true, documents: p.Documents})
	w.packages = append(w.packages, &in)
	w.findings = append(w.findings, p.Findings...)
}

// again returns a copy of a walk, which can be sorted and changed independently.
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
