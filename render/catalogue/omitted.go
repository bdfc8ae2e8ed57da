package catalogue

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/kustomize"
	"headgate.dev/headgate/render/manifest"
)

// An Omitted is a part of a commit that is skipped on purpose: an encrypted document, an ignored file, a symbolic link. Objects
// that once came from it do not count as removed.
type Omitted struct {
	Why    Why
	Origin manifest.Origin // the document, file or directory
	ID     manifest.ID     // the object's identity in the document; zero for everything at the path

	declares func() ([]manifest.ID, error) // nil if the content was read, or holds no manifests
}

// Declares returns the objects in a file that was not read, as far as its content shows them. It reads the file on the first call,
// because only a prune asks for it: a file that moves into a directory which is not read still declares its objects. The error means
// that the bytes are not available, so that the file may declare anything.
func (o Omitted) Declares() ([]manifest.ID, error) {
	if o.declares == nil {
		return nil, nil
	}
	return o.declares()
}

// skip records a part of the commit that is not read, or not applied. Everything that is skipped comes here: it is counted, and its
// objects are retained. So only three changes remove an object: its file or document is gone, its kustomization does not list it any
// more, or it lies outside of the path. The header is zero if no document was read.
func (w *walk) skip(why Why, at manifest.Origin, h manifest.Header) {
	w.skipped[why]++
	o := Omitted{Why: why, Origin: manifest.Origin{Path: printable(at.Path), Line: at.Line}}
	switch {
	case isIdentified(h):
		o.ID = h.ID()
	case why == Submodule:
		o.declares = func() ([]manifest.ID, error) { return nil, errElsewhere }
	case at.Line == 0 && why != NotUTF8: // such a file is no manifest
		o.declares = sync.OnceValues(func() ([]manifest.ID, error) { return w.skim(at.Path) })
	}
	w.omitted = append(w.omitted, o)
}

var errElsewhere = errors.New("the files of a submodule are in another repository")

func isIdentified(h manifest.Header) bool {
	return h.Kind != "" && h.Name != "" && !isCipher(h.Kind) && !isCipher(h.APIVersion) && !isCipher(h.Name) && !isCipher(h.Namespace)
}

// skim returns the identities in a skipped file, or in what kustomize builds from it. What is too large or malformed shows no identity:
// that may be why the file is skipped. The bytes of all skipped files have a limit of their own, beyond which they are not available.
func (w *walk) skim(name string) ([]manifest.ID, error) {
	info, err := fs.Lstat(w.files, name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return w.skimBehind(name)
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > w.aside.Limits().FileBytes && !isImageName(name) {
		return nil, err
	}
	f, err := w.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var documents []*manifest.Document
	switch {
	case isImageName(name):
		apart := *w
		apart.reader = w.aside
		documents, err = apart.readImage(name)
	case isKustomizationName(path.Base(name)):
		built, problems := kustomize.Directories(w.files, w.aside, []string{path.Dir(name)})
		documents = built.Documents
		for _, p := range problems {
			err = errors.Join(err, p.Err)
		}
	default:
		documents, err = w.aside.Read(name)
	}
	if exceeded := (manifest.LimitError{}); errors.As(err, &exceeded) {
		return nil, err
	}
	var ids []manifest.ID
	for _, d := range documents {
		if isIdentified(d.Header) {
			ids = append(ids, d.Header.ID())
			ids = append(ids, otherForm(d.Header.ID())...)
		}
	}
	return ids, nil
}

// skimBehind returns the identities in the file or directory of the commit that a link leads to. Headgate follows no links, but a directory
// that moves and leaves a link in its place still declares its objects for whoever looks at the commit.
func (w *walk) skimBehind(link string) (ids []manifest.ID, err error) {
	target, ok := w.behind(link)
	if !ok {
		return nil, nil
	}
	left := maxFiles
	err = fs.WalkDir(w.files, target, func(name string, e fs.DirEntry, err error) error {
		left--
		switch {
		case err != nil:
			return err
		case left < 0:
			return fmt.Errorf("%s leads to more than %d files and directories", link, maxFiles)
		case !e.Type().IsRegular(), name != target && !mayHoldManifests(e.Name()) && !isImageName(e.Name()):
			return nil
		}
		declared, err := w.skim(name)
		ids = append(ids, declared...)
		return err
	})
	return ids, err
}

// behind returns the path that a link leads to, through other links. It returns false if that is not in the commit.
func (w *walk) behind(link string) (target string, ok bool) {
	const most = 40 // links, as on Linux
	steps := strings.Split(link, "/")
	for links, n := 0, 1; n <= len(steps); n++ {
		here := path.Join(steps[:n]...)
		info, err := fs.Lstat(w.files, here)
		if err != nil {
			return "", false
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		to, err := fs.ReadLink(w.files, here)
		next := path.Join(path.Dir(here), to)
		if links++; err != nil || links > most || path.IsAbs(to) || !fs.ValidPath(next) {
			return "", false
		}
		steps, n = append(strings.Split(next, "/"), steps[n:]...), 0
	}
	return path.Join(steps...), true
}

// otherForm returns the other object that a definition may be applied as: its MRD or its CRD.
func otherForm(id manifest.ID) []manifest.ID {
	switch {
	case id.IsCRD():
		return []manifest.ID{crossplane.MRD(id.Name)}
	case crossplane.IsMRD(id):
		return []manifest.ID{crdNamed(id.Name)}
	}
	return nil
}
