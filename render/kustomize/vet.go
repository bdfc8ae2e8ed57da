package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
)

// A vetting reads kustomizations and the files that they refer to, and collects the files that kustomize may see.
type vetting struct {
	files     *traced
	reader    *manifest.Reader
	known     map[string]*kustomization // by directory; nil for invalid ones
	manifests map[string]*manifests     // by file name
	reads     map[string]bool
	view      view
	sources   []provenance // by the number in the mark of an object
	used      map[int]bool // indexes of sources from which something was built
	problems  []Error
	made      []rememberedObject // the result of the build, for the memory
	secret    bool               // the build uses a Secret
}

func newVetting(files fs.FS, reader *manifest.Reader) *vetting {
	return &vetting{
		files: &traced{files, map[string]bool{}}, reader: reader, view: newView(),
		known: map[string]*kustomization{}, manifests: map[string]*manifests{}, reads: map[string]bool{}, used: map[int]bool{},
	}
}

// A kustomization is a vetted kustomization.
type kustomization struct {
	dir       string
	origin    manifest.Origin // its file
	component bool
	openAPI   bool // it changes the schemas that kustomize uses
	upon      []*kustomization
	size      size

	file    string
	content map[string]any // as kustomize sees it
	at      func(path ...any) manifest.Origin
}

// A size counts everything that is built, as often as it is built: kustomizations that use each other multiply.
type size struct {
	visits, documents, crds int
	nested                  int // maximum depth
	bytes                   int64
}

func (s *size) add(more size) {
	s.visits += more.visits
	s.documents += more.documents
	s.crds += more.crds
	s.nested = max(s.nested, more.nested+1)
	s.bytes += more.bytes
}

// The limits that are not in manifest.Limits, because only this package needs them.
const (
	mostVisits = 10_000 // directories in one build
	mostNested = 100    // directories upon directories
)

var errNested = fmt.Errorf("kustomizations are nested more than %d deep", mostNested)

// within returns an error if a size exceeds the limits.
func (s size) within(limits manifest.Limits) error {
	const multiply = ": kustomizations that use one another multiply"
	switch {
	case s.nested > mostNested:
		return errNested
	case s.visits > mostVisits:
		return fmt.Errorf("it is built of more than %d directories%s", mostVisits, multiply)
	case s.documents > limits.Documents:
		return fmt.Errorf("it is built of more than the limit of %d documents%s", limits.Documents, multiply)
	case s.bytes > limits.TotalBytes:
		return fmt.Errorf("it is built of more than the limit of %d bytes%s", limits.TotalBytes, multiply)
	}
	return nil
}

func (v *vetting) refuse(at manifest.Origin, err error) {
	v.problems = append(v.problems, Error{Origin: at, Err: fmt.Errorf("%s: %w", at, err)})
}

// kustomization vets the kustomization of a directory. trail holds the directories that build on it. It returns nil if something is
// wrong, and records the error.
func (v *vetting) kustomization(dir string, trail []string, from manifest.Origin) *kustomization {
	if i := slices.IndexFunc(trail, func(other string) bool { return within(other, dir) }); i >= 0 {
		v.refuse(from, fmt.Errorf("%s cannot be built on %s, which contains it or builds on it", trail[i], dir))
		return nil
	}
	if k, known := v.known[dir]; known {
		return k
	}
	if len(trail) == mostNested {
		v.refuse(from, errNested)
		return nil
	}
	v.known[dir] = nil
	name, err := v.fileOf(dir)
	if err != nil {
		v.refuse(from, err)
		return nil
	}
	e, ok := v.open(name, trail)
	if !ok {
		return nil
	}
	k := e.vet()
	v.known[dir] = k
	return k
}

// within reports whether a directory is other or inside other.
func within(dir, other string) bool {
	return other == "." || dir == other || strings.HasPrefix(dir, other+"/")
}

// fileOf returns the kustomization file of a directory.
func (v *vetting) fileOf(dir string) (string, error) {
	var found []string
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		full := path.Join(dir, name)
		if _, err := fs.Lstat(v.files, full); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		_, isDir, err := v.entry(full)
		if err != nil {
			return "", err
		}
		if !isDir {
			found = append(found, full)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s is a directory without a kustomization.yaml", dir)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s also has a %s: keep one of them", found[0], path.Base(found[1]))
}

// open reads a kustomization strictly.
func (v *vetting) open(name string, trail []string) (*editing, bool) {
	v.reads[name] = true
	at := manifest.Origin{Path: name}
	documents, err := v.reader.Read(name)
	if err != nil {
		v.problems = append(v.problems, Error{Origin: at, Err: err})
		return nil, false
	}
	at.Line = 1
	switch {
	case len(documents) == 0:
		v.refuse(at, errors.New("the kustomization is empty"))
		return nil, false
	case !Is(documents):
		v.refuse(documents[0].Origin, fmt.Errorf("%s is not a kustomization: its apiVersion is %s", name, documents[0].Header.APIVersion))
		return nil, false
	case len(documents) > 1:
		v.refuse(documents[1].Origin, errors.New("a kustomization is one document"))
		return nil, false
	}
	document := documents[0]
	content, err := document.Decode()
	if err != nil {
		v.problems = append(v.problems, Error{Origin: document.Origin, Err: err})
		return nil, false
	}
	e := &editing{
		vetting: v,
		k:       &kustomization{dir: path.Dir(name), origin: document.Origin, file: name, content: content.Object, at: document.OriginOf},
		file:    name,
		trail:   append(slices.Clone(trail), path.Dir(name)),
		content: content.Object,
		at:      document.OriginOf,
	}
	before := len(v.problems)
	var decoded types.Kustomization
	e.strict(content.Object, &decoded)
	for _, wrong := range decoded.EnforceFields() {
		v.refuse(document.Origin, errors.New(wrong))
	}
	return e, len(v.problems) == before
}
