package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The rules of findings of this package.
const (
	RuleNotInstalled  = "not-installed-from-package"
	RuleHook          = "hook-not-applied"
	RuleMetadata      = "package-metadata-elsewhere"
	RuleBuildInput    = "package-build-input"
	RuleHiddenPackage = "package-inside-kustomization"
	RuleIncompatible  = "package-incompatible"
	RuleUnsubstituted = "unsubstituted-variable"
	RuleTwice         = "declared-by-two-packages"
)

// Options configures how a commit is read. The zero value means the defaults.
type Options struct {
	Limits            manifest.Limits
	Others            Others
	CrossplaneVersion string        // the version of Crossplane whose package manager is imitated; "" means the newest
	Packages          []Declared    // packages without a crossplane.yaml
	Memo              manifest.Memo // may be nil
}

// Equal reports whether two options read the same documents. It does not compare the Memo.
func (how Options) Equal(other Options) bool {
	return how.Limits == other.Limits && how.Others == other.Others && how.CrossplaneVersion == other.CrossplaneVersion &&
		slices.Equal(how.Packages, other.Packages)
}

// Check returns an error if the options are invalid.
func (how Options) Check() error {
	_, err := crossplane.VersionOf(how.CrossplaneVersion)
	return errors.Join(how.Others.Check(), err, checkDeclared(how.Packages))
}

// ReadStream reads a stream that is not a file of a commit: a package if it contains package metadata, and otherwise CRDs, which it
// treats as those of a safe-start provider. Errors in the stream are of type Errors.
func ReadStream(name string, stream io.Reader, how Options) (Catalogue, error) {
	w, err := newWalk(nil, how)
	if err != nil {
		return Catalogue{}, err
	}
	documents, err := w.reader.Stream(manifest.Stream{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(stream), nil }})
	if err != nil {
		return Catalogue{}, Errors{{Origin: manifest.Origin{Path: name}, Err: err}}
	}
	in, err := w.packageIn(documents, name)
	if err != nil {
		return Catalogue{}, ErrorsOf(manifest.Origin{Path: name}, err)
	}
	if in == nil {
		in = &Package{Name: name, Kind: crossplane.Provider, Directory: name, SafeStart: true, Origin: manifest.Origin{Path: name}}
	}
	w.found = []*file{{path: name, in: in, documents: documents}}
	c, problems := w.sort().catalogue()
	return c, problems.OrNil()
}

// newWalk returns a walk that has not begun.
func newWalk(files fs.FS, how Options) (*walk, error) {
	if err := how.Check(); err != nil {
		return nil, err
	}
	version, err := crossplane.VersionOf(how.CrossplaneVersion)
	return &walk{
		files: files, how: how, reader: manifest.NewReader(files, how.Limits, how.Memo), aside: manifest.NewReader(files, how.Limits, how.Memo), version: version,
		declared: declaredPackages(how.Packages), skipped: Skipped{}, directories: map[string]bool{},
	}, err
}

// sort sorts every document by its fate.
func (w *walk) sort() *sorting {
	s := &sorting{walk: w}
	for _, f := range w.found {
		for _, d := range f.documents {
			s.place(d, f.in)
		}
	}
	s.decode()
	s.refuseAlmost()
	s.readPolicies()
	slices.SortStableFunc(s.definitions, func(a, b *Definition) int { return cmp.Compare(a.Name, b.Name) })
	s.refuseDuplicates()
	return s
}

// read reads the files that the walk found.
func (w *walk) read() {
	names := make([]string, 0, len(w.found))
	at := make([]int, 0, len(w.found)) // their indexes in w.found
	trouble := make([]error, len(w.found))
	for i, f := range w.found {
		switch {
		case f.image:
			w.found[i].documents, trouble[i] = w.readImage(f.path)
		case f.documents == nil:
			names = append(names, f.path)
			at = append(at, i)
		}
	}
	w.reader.ReadAll(names, func(i int, documents []*manifest.Document, err error) {
		w.found[at[i]].documents, trouble[at[i]] = documents, err
	})
	for i, err := range trouble {
		if err == nil {
			w.skipEmpty(w.found[i])
			continue
		}
		f := w.found[i]
		f.failed = true
		at := manifest.Origin{Path: f.path}
		if why := w.templateOf(f.path); why != "" {
			w.skip(why, at, manifest.Header{})
		} else {
			w.problems = append(w.problems, ErrorsOf(at, err)...)
		}
	}
}

// skipEmpty skips a file of no bytes. Who removes objects removes their file, or its lines: an empty one is what a full disk leaves, or a
// shell whose command failed.
func (w *walk) skipEmpty(f *file) {
	if len(f.documents) > 0 {
		return
	}
	if info, err := fs.Lstat(w.files, f.path); err == nil && info.Size() == 0 {
		w.skip(Empty, manifest.Origin{Path: f.path}, manifest.Header{})
	}
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

// sorting holds the documents of a walk, sorted.
type sorting struct {
	*walk
	definitions []*Definition
	policies    []Policy
	details     []Details
	toDecode    []*undecoded
	doubtful    []*manifest.Document // not manifests, but possibly meant to be
	repeated    []manifest.ID        // declared more than once, and declaring a kind
}

// An undecoded document is an object or a policy whose body must be decoded.
type undecoded struct {
	*manifest.Document
	fate   fate
	in     *Package
	object *unstructured.Unstructured // nil if the document is skipped or invalid
}

// metadataElsewhere returns the finding about metadata of a package that makes no package.
func metadataElsewhere(d *manifest.Document) manifest.Finding {
	return manifest.Finding{
		Rule: RuleMetadata, Severity: manifest.Warning, Origin: d.Origin, About: manifest.About{Object: d.Header.ID()},
		Message: fmt.Sprintf("%s %s is metadata of a package, and makes this directory no package: Crossplane and Headgate read it from crossplane.yaml only", d.Header.Kind, d.Header.Name),
		Fix:     "rename the file to crossplane.yaml, or list it in " + ignoreFile,
	}
}

// place sorts a document by its header.
func (s *sorting) place(d *manifest.Document, in *Package) {
	what, why := s.fateOf(d.Header, in)
	if what == apply && isPlaceholder(d.Header) {
		what, why = skip, Placeholders
	}
	if lacksName(what, d.Header) && isForProgram(d) {
		what, why = skip, ForProgram
	}
	switch what {
	case foreign:
		s.other(d, why)
		return
	case skip:
		s.skipDocument(why, d, in)
		if why == Hook {
			s.findings = append(s.findings, hookSkipped(d))
		}
		if why == NotManifest && (in == nil || !in.Image) {
			s.doubtful = append(s.doubtful, d)
		}
		if why == Metadata && in == nil {
			s.findings = append(s.findings, metadataElsewhere(d))
		}
		if why == Metadata && in != nil && d.Origin != in.Origin {
			s.refuse(d.Origin, fmt.Errorf("%s is metadata of a package, and package %s has its own, at %s: remove one of them, or give it a directory of its own", d.Header.Kind, in.Name, in.Origin))
		}
		return
	case misplaced:
		if in.Image && s.version.RefusesMisplaced() {
			s.refuse(d.Origin, fmt.Errorf("%s is not a kind that Crossplane %s accepts in a %s package: it refuses all of package %s", d.Header.Kind, s.version, in.Kind, in.Name))
			return
		}
		s.skipDocument(why, d, in)
		s.findings = append(s.findings, s.notInstalled(d, in))
		return
	case details:
		s.skipDocument(why, d, in)
		of, err := detailsOf(d)
		s.problems = append(s.problems, ErrorsOf(d.Origin, err)...)
		s.details = append(s.details, of...)
		return
	case native, converted, policy, webhook, apply:
		// used if it is complete
	case unknown:
		group := d.Header.ID().Group
		s.refuse(d.Origin, fmt.Errorf("%s is not known in version %s: use %s/%s", d.Header.Kind, d.Header.APIVersion, group, strings.Join(versionsOf(group), " or ")))
		return
	}
	if d.Header.Kind == "List" && d.Header.APIVersion == "v1" {
		s.refuse(placeOf(d, "items"), errors.New("items of a List must be a list: correct it, or remove the document"))
		return
	}
	if d.Header.Name == "" {
		s.problems = append(s.problems, nameless(d)...)
		return
	}
	if key, why := d.Header.ID().Unnameable(); key != "" {
		s.refuse(placeOf(d, "metadata", key), fmt.Errorf("metadata.%s of %s %s %s, so no API server has such an object: correct it, or list the file in %s if another program fills it in",
			key, d.Header.Kind, d.Header.Name, why, ignoreFile))
		return
	}
	if what == native || what == converted {
		s.define(d, in, what) // the body is decoded only when it is needed
		return
	}
	s.toDecode = append(s.toDecode, &undecoded{Document: d, fate: what, in: in})
}

// skipDocument skips a document. A document of a pulled package is only counted: the commit never declared an object in it.
func (s *sorting) skipDocument(why Why, d *manifest.Document, in *Package) {
	if in.Pulled() {
		s.skipped.Add(why)
		return
	}
	s.skip(why, d.Origin, d.Header)
}

// hookSkipped returns the finding about a hook. A hook runs at a moment that Headgate does not have: after a failed sync, for a test, at
// the end of an application. Applied like another object, it would run at once.
func hookSkipped(d *manifest.Document) manifest.Finding {
	return manifest.Finding{
		Rule: RuleHook, Severity: manifest.Warning, Origin: d.Origin, About: manifest.About{Object: d.Header.ID()},
		Message: strings.TrimRight(d.Header.Kind+" "+d.Header.Name, " ") + " is a hook of Argo CD or Helm, which Headgate never runs: it is not applied",
		Fix:     "remove the annotation if the object is to be applied like any other",
	}
}

func (s *sorting) notInstalled(d *manifest.Document, in *Package) manifest.Finding {
	h := d.Header
	severity, fix := manifest.Warning, "move it out of "+in.Directory
	if in.Directory == "." {
		fix = "move the package to a directory of its own"
	}
	refused := ""
	if s.version.Refuses(h.ID(), h.Version()) {
		refused = ", and it refuses a package that holds one"
	} else {
		fix += " if the object is meant to be applied"
	}
	switch {
	case in.Pulled():
		severity, fix = manifest.Note, "" // another tool uses it
	case in.Image:
		fix = "build the package without it"
	}
	return manifest.Finding{
		Rule: RuleNotInstalled, Severity: severity, Origin: d.Origin, About: manifest.About{Object: h.ID(), Subject: in.Name},
		Message: strings.TrimRight(fmt.Sprintf("%s %s", h.Kind, h.Name), " ") +
			fmt.Sprintf(" is in %s package %s, and Crossplane installs %s from it: it is not applied%s", in.Kind, in.Name, s.version.Installs(in.Kind), refused),
		Fix: fix,
	}
}

func (s *sorting) define(d *manifest.Document, in *Package, what fate) {
	h := d.Header
	def := &Definition{
		Name:     h.Name,
		Group:    h.Spec.Group,
		Kind:     h.Spec.Kind,
		Plural:   h.Spec.Plural,
		Scope:    h.Spec.Scope,
		State:    State(h.Spec.State),
		Paused:   h.Paused,
		FromCRD:  what == converted,
		Package:  in,
		Document: d,
	}
	if field := missingName(h.Spec); field != nil {
		s.refuse(placeOf(d, field...), fmt.Errorf("%s of %s %s must be a string that is not empty", manifest.Field(field...), h.Kind, def.Name))
		return
	}
	switch {
	case def.FromCRD && in.SafeStart:
		def.State = None
	case def.FromCRD:
		def.State = Active
	case def.State != None && def.State != Active && def.State != Inactive:
		s.refuse(d.OriginOf("spec", "state"), fmt.Errorf("spec.state of ManagedResourceDefinition %s must be Active or Inactive, not %q", def.Name, def.State))
		return
	}
	s.definitions = append(s.definitions, def)
}

// missingName returns the first missing field that a definition needs for its identity, or nil.
func missingName(spec manifest.SpecHeader) []any {
	switch "" {
	case spec.Group:
		return []any{"spec", "group"}
	case spec.Kind:
		return []any{"spec", "names", "kind"}
	case spec.Plural:
		return []any{"spec", "names", "plural"}
	}
	return nil
}

// decode decodes the documents in toDecode.
func (s *sorting) decode() {
	for _, u := range s.toDecode {
		if err := u.Claim(); err != nil {
			s.problems = append(s.problems, Error{Origin: u.Origin, Err: err})
			return
		}
	}
	trouble := make([]error, len(s.toDecode))
	manifest.Each(len(s.toDecode), func(i int) {
		u := s.toDecode[i]
		u.object, trouble[i] = u.Recall()
	})
	var flux []*substitution
	asked := false
	for i, u := range s.toDecode {
		switch err := trouble[i]; {
		case err != nil:
			s.problems = append(s.problems, ErrorsOf(u.Origin, err)...)
		case u.object != nil && isEncrypted(u.object) && s.how.Others != ApplyOthers:
			s.other(u.Document, Encrypted)
			u.object = nil
		case u.fate == webhook:
			u.object.SetName("crossplane-" + strings.ToLower(u.in.Kind) + "-" + u.in.Name)
		case u.fate == apply && !u.in.Pulled():
			s.problems = append(s.problems, malformedInstall(u)...)
			s.problems = append(s.problems, refuseMetadata(u)...)
			found := unsubstituted(u)
			if len(found) > 0 && !asked { // only then, because it reads kustomizations
				flux, asked = s.substitutions(), true
			}
			if len(found) > 0 && !substituted(flux, u.Origin.Path) {
				s.findings = append(s.findings, found...)
			}
		}
	}
	s.findings = append(s.findings, notes(flux)...)
}

// refuseDuplicates refuses identities that are declared twice, and definitions that are declared in two ways.
func (s *sorting) refuseDuplicates() {
	if !s.hasDuplicates() {
		return
	}
	type claim struct {
		id         manifest.ID
		name       string // of a definition
		origin     manifest.Origin
		in         *Package
		definition *Definition // definition or object, only one of them
		object     *undecoded
	}
	claims := make([]claim, 0, len(s.definitions)+len(s.toDecode))
	for _, d := range s.definitions {
		claims = append(claims, claim{id: d.id(), name: d.Name, origin: d.Document.Origin, in: d.Package, definition: d})
	}
	for _, u := range s.toDecode {
		if u.object != nil {
			claims = append(claims, claim{id: manifest.IDOf(u.object), origin: u.Origin, in: u.in, object: u})
		}
	}
	slices.SortStableFunc(claims, func(a, b claim) int {
		if a.in.Pulled() != b.in.Pulled() { // declarations of the commit itself come first
			return cmp.Compare(rank(a.in.Pulled()), rank(b.in.Pulled()))
		}
		return a.origin.Compare(b.origin)
	})
	var second []twice
	objects := map[string]int{}
	for _, c := range claims {
		objects[c.origin.Path]++
	}
	defer func() { s.problems = append(s.problems, declaredTwice(second, objects)...) }()
	again := func(c claim, what string, first manifest.Origin) {
		if !c.in.Pulled() {
			second = append(second, twice{what, c.origin, first})
			if crossplane.DeclaresKind(c.id) {
				s.repeated = append(s.repeated, c.id)
			}
			return
		}
		s.findings = append(s.findings, manifest.Finding{
			Rule: RuleTwice, Severity: manifest.Warning, Origin: c.in.Mentioned, About: manifest.About{Object: c.id, Subject: c.in.Directory},
			Message: fmt.Sprintf("%s, which package %s holds, is declared at %s already: Crossplane installs only one of them, and reports the other package as unhealthy", what, c.in.Directory, first),
			Fix:     "install one of the two",
		})
		if c.object != nil {
			c.object.object = nil
		} else {
			s.definitions = slices.DeleteFunc(s.definitions, func(d *Definition) bool { return d == c.definition })
		}
	}

	byID := make(map[manifest.ID]manifest.Origin, len(claims))
	byName := make(map[string]manifest.Origin, len(s.definitions))
	for _, c := range claims {
		if first, twice := byID[c.id]; twice {
			again(c, c.id.String(), first)
			continue
		}
		byID[c.id] = c.origin
		if c.name == "" {
			continue
		}
		if first, twice := byName[c.name]; twice {
			again(c, "definition "+c.name, first)
			continue
		}
		byName[c.name] = c.origin
	}
}

// hasDuplicates reports whether anything is declared twice. Every render calls it, and usually there are no duplicates, so it must
// be fast. The definitions are sorted by name.
func (s *sorting) hasDuplicates() bool {
	for i, d := range s.definitions {
		if i > 0 && d.Name == s.definitions[i-1].Name {
			return true
		}
	}
	seen := make(map[manifest.ID]bool, len(s.toDecode))
	for _, u := range s.toDecode {
		if u.object == nil {
			continue
		}
		id := manifest.IDOf(u.object)
		at, ok := slices.BinarySearchFunc(s.definitions, id.Name, (*Definition).compare)
		if seen[id] || ok && s.definitions[at].id() == id {
			return true
		}
		seen[id] = true
	}
	return false
}

func (d *Definition) compare(name string) int { return cmp.Compare(d.Name, name) }

// catalogue returns the sorted documents, in order, and all problems. Only catalogue returns problems, and it runs last, so that it
// misses none. If something is declared twice, the catalogue contains the first declaration.
func (s *sorting) catalogue() (Catalogue, Errors) {
	c := Catalogue{Shipped: map[manifest.ID]*Package{}, Programs: slices.Clone(s.programs), Policies: s.policies, Details: s.details, Directories: slices.Sorted(maps.Keys(s.directories)), Skipped: s.skipped}

	c.Definitions = slices.CompactFunc(s.definitions, func(a, b *Definition) bool { return a.Name == b.Name })
	for _, u := range s.toDecode {
		if u.object == nil {
			continue
		}
		o := manifest.Object{Unstructured: u.object, Origin: u.Origin, Document: u.Document}
		c.Objects = append(c.Objects, o)
		if u.in != nil {
			c.Shipped[o.ID()] = u.in
		}
	}
	for _, p := range s.packages {
		if !p.Pulled() {
			p.Installer = installer(p, c.Objects)
		}
		c.Packages = append(c.Packages, *p)
	}

	slices.SortStableFunc(c.Objects, func(a, b manifest.Object) int { return a.ID().Compare(b.ID()) })
	slices.SortFunc(c.Programs, func(a, b Program) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortStableFunc(c.Policies, func(a, b Policy) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Origin.Compare(b.Origin))
	})
	slices.SortFunc(c.Packages, func(a, b Package) int { return a.Origin.Compare(b.Origin) })
	slices.SortStableFunc(c.Details, func(a, b Details) int { return a.Origin.Compare(b.Origin) })
	c.Repeated = s.repeated
	c.Omitted = s.omitted
	slices.SortStableFunc(c.Omitted, func(a, b Omitted) int { return a.Origin.Compare(b.Origin) })
	c.Findings = s.findings
	slices.SortFunc(c.Findings, manifest.Finding.Compare)
	return c, s.problems
}
