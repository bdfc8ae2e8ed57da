package catalogue

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A file is a file with manifests.
type file struct {
	path      string
	in        *Package             // the package that contains the file; nil outside of packages
	image     bool                 // the file is the image of a package
	documents []*manifest.Document // nil until the file is read
	failed    bool                 // the file could not be read
}

// A walk finds the files of a commit and the packages that they belong to.
type walk struct {
	files    fs.FS
	how      Options
	reader   *manifest.Reader
	version  crossplane.Version
	declared map[string]*Package // packages by directory that the walk has not reached yet
	root     string
	found    []*file
	packages []*Package
	ignored  ignoring
	seen     bounds

	kustomizations []string        // directories
	directories    map[string]bool // directories with files to read or to leave to other tools, except ignored ones
	skipped        Skipped
	omitted        []Omitted
	findings       []manifest.Finding
	problems       Errors
}

// from starts the walk at root: a directory or a file.
func (w *walk) from(root string) {
	root = path.Clean(strings.Trim(root, "/"))
	if root == "" {
		root = "."
	}
	if !fs.ValidPath(root) {
		w.refuse(manifest.Origin{Path: root}, errors.New("is not a path inside of the commit"))
		return
	}
	w.root = root
	in, ok := w.above(root)
	if !ok {
		return
	}
	info, err := fs.Lstat(w.files, root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.refuse(manifest.Origin{Path: root}, errors.New("this commit has no such path"))
	case err != nil:
		w.refuse(manifest.Origin{Path: root}, err)
	case info.IsDir():
		w.directory(root, in)
	case isKustomizationName(path.Base(root)) && w.isKustomization(root):
		w.refuse(manifest.Origin{Path: root}, errors.New("is a kustomization: name its directory"))
	default:
		if !in.ships(path.Dir(root)) {
			in = nil
		}
		w.found = append(w.found, &file{path: root, in: in, image: isImageName(root)})
	}
}

// above checks the directories on the path to root. It returns the package that contains root, if any. ok is false if a directory
// cannot be read.
func (w *walk) above(root string) (in *Package, ok bool) {
	if root == "." {
		return nil, true
	}
	steps := strings.Split(root, "/")
	for i := range steps {
		dir := path.Join(append([]string{"."}, steps[:i]...)...)
		here := path.Join(dir, steps[i])
		if info, err := fs.Lstat(w.files, here); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			w.refuse(manifest.Origin{Path: here}, errors.New("is a symbolic link, which is not followed: name the directory itself"))
			return nil, false
		}
		if !w.readIgnoreFile(dir) {
			return nil, false
		}
		begins, ok := w.enter(dir, func(name string) bool { return w.isFile(path.Join(dir, name)) })
		if !ok {
			return nil, false
		}
		if begins.in != nil {
			in = begins.in
		}
		if in != nil && isBuildInput(steps[i]) {
			in = nil // the directory was requested by name
		}
	}
	return in, true
}

// isFile reports whether the commit has a regular file of this name that is not ignored.
func (w *walk) isFile(name string) bool {
	info, err := fs.Lstat(w.files, name)
	return err == nil && info.Mode().IsRegular() && !w.ignored.matches(name, false)
}

// directory walks a directory in lexical order. above is the package that contains the directory.
func (w *walk) directory(dir string, above *Package) {
	if w.seen.exceeded {
		return
	}
	entries, err := fs.ReadDir(w.files, dir)
	if err != nil {
		w.refuse(manifest.Origin{Path: dir}, err)
		return
	}
	if !w.readIgnoreFile(dir) {
		return
	}
	below := dir + "/"
	if dir == "." {
		below = ""
	}
	for _, e := range entries {
		if !w.visit(below, e.Name()) {
			return
		}
	}
	if len(w.ignored) > 0 {
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return w.skipIgnored(below+e.Name(), e.IsDir()) })
	}
	isRegular := func(name string) bool {
		i, ok := slices.BinarySearchFunc(entries, name, func(e fs.DirEntry, name string) int { return cmp.Compare(e.Name(), name) })
		return ok && entries[i].Type().IsRegular()
	}

	outside := above
	begins, ok := w.enter(dir, isRegular)
	if !ok {
		return // the kind of its files is not known
	}
	if begins.in != nil {
		above = begins.in
	}
	in := above
	if !above.ships(dir) {
		in = nil
	}
	if !outside.ships(dir) {
		outside = nil
	}
	var sources *Package
	if in == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() && e.Name() == "package" }) {
		sources = w.sources(dir)
	}
	if w.kustomization(dir, isRegular, in, outside) {
		return
	}

	for _, e := range entries {
		name := e.Name()
		full := below + name
		switch {
		case strings.HasPrefix(name, "."):
		case e.Type()&fs.ModeSymlink != 0:
			w.skipped[Symlink]++
			w.directories[full] = true
			w.omit(Symlink, manifest.Origin{Path: full}, manifest.Header{})
		case e.IsDir() && in != nil && isBuildInput(name):
			w.skipAll(full, BuildInput)
		case e.IsDir() && (above.onlyBuilds(full) || isSourceOnly(sources, name)):
			w.skipAll(full, BuildInput)
			if sources != nil {
				w.noteSource(full, sources)
			}
		case e.IsDir():
			w.directory(full, above)
		case !e.Type().IsRegular():
			w.skipped[Submodule]++
			w.directories[full] = true
			w.omit(Submodule, manifest.Origin{Path: full}, manifest.Header{})
		case in == nil && w.misnamedKustomization(full):
		case begins.reads(full) != nil:
			f := begins.reads(full)
			f.in = in
			w.found = append(w.found, f)
			w.directories[dir] = true
		case isManifestName(name):
			w.found = append(w.found, &file{path: full, in: in})
			w.directories[dir] = true
		case isManifestName(strings.ToLower(name)):
			w.skipped[Capitals]++
			w.omit(Capitals, manifest.Origin{Path: full}, manifest.Header{})
		case isImageName(name) && in != nil && !in.isDeclared(): // the build output of the package
			w.skipped[BuildInput]++
			w.omit(BuildInput, manifest.Origin{Path: full}, manifest.Header{})
		case isImageName(name):
			w.found = append(w.found, &file{path: full, image: true})
		}
	}
}

// reads returns the file with this name if it was read to find the package, or nil.
func (b beginning) reads(name string) *file {
	for _, f := range b.read {
		if f.path == name {
			return f
		}
	}
	return nil
}

// skipAll counts and records the files below a directory that would otherwise be read.
func (w *walk) skipAll(dir string, why Why) {
	w.below(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case e.Type().IsRegular() && isManifestName(e.Name()):
			w.skipped[why]++
			if why != Ignored {
				w.directories[path.Dir(name)] = true
			}
			w.omit(why, manifest.Origin{Path: name}, manifest.Header{})
		case !e.IsDir() && (isImageName(e.Name()) || !e.Type().IsRegular()):
			w.omit(why, manifest.Origin{Path: name}, manifest.Header{})
		}
		return nil
	})
}

func (w *walk) refuse(at manifest.Origin, err error) {
	w.problems = append(w.problems, Errorf(at, "%w", withoutPath(err)))
}

// withoutPath returns an error of a file system without its path, which the message already contains.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func isManifestName(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(name, ".")
	}
	return false
}

// isBuildInput reports whether a directory inside a package contains only examples, tests or build inputs, which the package does
// not ship.
func isBuildInput(directory string) bool {
	switch directory {
	case "examples", "test", "tests", "testdata", "e2e", "upstream":
		return true
	}
	return false
}
