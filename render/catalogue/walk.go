package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

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
	aside    *manifest.Reader // of skipped files
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
	programs       []Program // of functions
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
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return w.skipIgnored(below+e.Name(), e) })
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
		case strings.HasPrefix(name, ".") && e.IsDir():
			w.skipAll(full, Hidden)
		case strings.HasPrefix(name, "."):
			w.skipFile(full, e, Hidden)
		case !utf8.ValidString(name):
			w.misnamed(full)
		case e.Type()&fs.ModeSymlink != 0:
			w.directories[full] = true
			w.skip(Symlink, manifest.Origin{Path: full}, manifest.Header{})
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
			w.directories[full] = true
			w.skip(Submodule, manifest.Origin{Path: full}, manifest.Header{})
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
			w.skip(Capitals, manifest.Origin{Path: full}, manifest.Header{})
		case isImageName(name) && in != nil && !in.isDeclared(): // the build output of the package
			w.skip(BuildInput, manifest.Origin{Path: full}, manifest.Header{})
		case isImageName(name):
			w.found = append(w.found, &file{path: full, image: true})
		default:
			w.skipFile(full, e, OtherSuffix)
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

// skipAll skips the files below a directory that would otherwise be read.
func (w *walk) skipAll(dir string, why Why) {
	w.below(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if why == BuildInput && e.Type().IsRegular() && isManifestName(e.Name()) {
			w.directories[path.Dir(name)] = true
		}
		w.skipFile(name, e, why)
		return nil
	})
}

// ApprovalsFile is read by Headgate itself, and not as a manifest. So it is not counted as skipped.
const ApprovalsFile = ".headgate/approvals.yaml"

// skipFile skips a file if it may hold manifests, or may lead to them. Nothing of other files is read, except which kinds a program of
// a function names.
func (w *walk) skipFile(name string, e fs.DirEntry, why Why) {
	if name == ApprovalsFile {
		return
	}
	if (why == OtherSuffix || why == BuildInput) && e.Type().IsRegular() {
		w.noteProgram(name)
	}
	if mayHoldManifests(e.Name()) || isImageName(e.Name()) || !e.Type().IsRegular() {
		w.skip(why, manifest.Origin{Path: name}, manifest.Header{})
	}
}

// misnamed skips a file or directory whose name is not UTF-8, or refuses it if it holds manifests: neither an error nor the inventory
// could name them.
func (w *walk) misnamed(name string) {
	at := manifest.Origin{Path: printable(name)}
	if !w.holdsManifests(name) {
		w.skip(NotUTF8, at, manifest.Header{})
		return
	}
	w.refuse(at, fmt.Errorf("the name %s in directory %s is not UTF-8: rename it (git mv), or list it in %s", path.Base(at.Path), path.Dir(at.Path), ignoreFile))
}

// holdsManifests reports whether a file is a manifest by its name, or a directory holds such a file.
func (w *walk) holdsManifests(name string) (holds bool) {
	w.below(name, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case w.ignored.matches(name, e.IsDir()), strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case e.Type().IsRegular() && isManifestName(e.Name()):
			holds = true
			return fs.SkipAll
		}
		return nil
	})
	return holds
}

// printable replaces the bytes of a name that are not UTF-8 by their escapes, such as \xe9.
func printable(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		if r != utf8.RuneError || strings.HasPrefix(name[i:], string(utf8.RuneError)) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\x%02x`, name[i])
	}
	return b.String()
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

var manifestNames = regexp.MustCompile(`\.(ya?ml|json)($|[^a-z])`)

// mayHoldManifests reports whether a file is named like a manifest, whatever comes before or after: .a.yaml, a.YML, a.yaml.disabled.
func mayHoldManifests(name string) bool { return manifestNames.MatchString(strings.ToLower(name)) }

// isBuildInput reports whether a directory inside a package contains only examples, tests or build inputs, which the package does
// not ship.
func isBuildInput(directory string) bool {
	switch directory {
	case "examples", "test", "tests", "testdata", "e2e", "upstream":
		return true
	}
	return false
}
