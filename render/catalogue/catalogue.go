// Package catalogue sorts the documents of a commit into definitions, policies, packages and the rest. Package activation decides
// which definitions are active.
package catalogue

import (
	"errors"
	"slices"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Catalogue holds everything that a commit declares.
type Catalogue struct {
	Definitions []*Definition            // by name, unique
	Policies    []Policy                 // by name
	Packages    []Package                // by origin
	Objects     []manifest.Object        // all other objects to apply, by identity, including policies, exempt CRDs and webhook configurations of packages
	Shipped     map[manifest.ID]*Package // the objects among Objects that came with a package
	Details     []Details                // by origin; Describe adds them to definitions
	Directories []string                 // sorted directories with manifests, even if none is applied, without ignored ones
	Unread      []Unread                 // packages of registries that could not be read, by source
	Programs    []Program                // programs and templates of functions, by path
	Beside      []Beside                 // images that also have a copy in the tree, by source
	Repeated    []manifest.ID            // definitions, CRDs and XRDs that the commit declares more than once, which is an error
	Skipped     Skipped
	Omitted     []Omitted          // what was skipped on purpose, by origin
	Findings    []manifest.Finding // sorted
}

// A Beside is the image of a package that also has a copy in the tree. An object of the commit makes Crossplane install the image,
// regardless of the copy.
type Beside struct {
	Package     Package
	Definitions []*Definition
	Objects     []manifest.Object
}

// State is the state that a definition declares: spec.state of an MRD.
type State string

// The states. The API server defaults an absent state to Inactive.
const (
	None     State = ""
	Active   State = "Active"
	Inactive State = "Inactive"
)

// A Definition is a managed resource type: a native MRD, or an MRD made from a CRD
// of a provider package.
type Definition struct {
	Name    string // <plural>.<group>: the name of the MRD and of the CRD
	Group   string
	Kind    string
	Plural  string
	Scope   string
	State   State    // as declared; a converted definition is Active if its package is not safe-start
	Paused  bool     // crossplane.io/paused: "true"
	FromCRD bool     // converted; otherwise, the document is a native MRD
	Package *Package // the package that contains it; nil outside of packages

	// ConnectionDetails come from an object of the commit, in addition to those in the document.
	ConnectionDetails []ConnectionDetail

	Document *manifest.Document // nil for a definition that exists only in the cluster
}

// id returns the identity of the object that declares the definition.
func (d *Definition) id() manifest.ID {
	if d.FromCRD {
		return crdNamed(d.Name)
	}
	return crossplane.MRD(d.Name)
}

func crdNamed(name string) manifest.ID {
	return manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}
}

// Origin returns where the commit declares the definition; zero if it exists only in the cluster.
func (d *Definition) Origin() manifest.Origin {
	if d.Document == nil {
		return manifest.Origin{}
	}
	return d.Document.Origin
}

// A Policy is a ManagedResourceActivationPolicy.
type Policy struct {
	Name     string
	Paused   bool
	Patterns []Pattern
	Origin   manifest.Origin
}

// A Pattern is one entry of spec.activate.
type Pattern struct {
	Glob   string
	Origin manifest.Origin // the line of the entry if it is known, or else the document
}

// A Package is a provider, configuration or function package in the tree, or in a registry.
type Package struct {
	Name      string // metadata.name of crossplane.yaml, or the declared name
	Kind      string // Provider, Configuration, Function
	Directory string // slash-separated, from the root of the commit; the file of an image in the tree; the reference of a pulled package
	Image     bool   // an image, as Crossplane installs it, instead of a directory
	SafeStart bool
	Origin    manifest.Origin // of crossplane.yaml; the directory of a declared package
	Release   string          // the release according to its metadata, or ""

	// Installer is the Provider, Configuration or Function object of the commit that makes Crossplane install the same package,
	// directly or as a dependency; zero if there is none.
	Installer manifest.ID

	// These are set only for a package in a registry.
	Source     string                // its repository, which identifies the package
	Version    string                // the tag or digest that was used
	Digest     string                // digest of the image that the reference resolved to
	Mentioned  manifest.Origin       // the first place that requests it
	Named      manifest.ID           // the object of the commit that names it; zero for a dependency
	Installers []manifest.ID         // all objects that make Crossplane install it, the Installer first
	Manual     bool                  // a user must approve every new version
	Installed  *crossplane.Installed // the package's state in the cluster; nil if no cluster was asked, zero if it is not installed

	Depends []Dependency

	Project *Project // set only for a package that is not built yet
	Kept    *Kept    // set only for a package that was read from content that the commit keeps
}

// Kept describes the content that a commit keeps of a package. It is used if the image is not available. Its inactive definitions
// have no schemas.
type Kept struct {
	File, Hash string
	Err        error // why the image is not available
	Documents  []*manifest.Document
}

// Outage reports whether the registry of the image may answer later.
func (k *Kept) Outage() bool { return Unread{Err: k.Err}.Outage() }

// Pulled reports whether a package comes from a registry. p may be nil.
func (p *Package) Pulled() bool { return p != nil && p.Digest != "" }

// InstalledBy reports whether an object of the commit makes Crossplane install the package.
func (p *Package) InstalledBy(id manifest.ID) bool {
	return p.Installer == id || slices.Contains(p.Installers, id)
}

// An Unread package is mentioned in the commit, but its content is not known.
type Unread struct {
	Source     string
	Wanted     string        // what the commit requests: an image, or a constraint
	Installers []manifest.ID // the objects of the commit that make Crossplane install it
	Origin     manifest.Origin
	Err        error
}

// MayDefine reports whether the package may hold definitions, or bring packages that do. A Function does neither.
func (u Unread) MayDefine() bool {
	return len(u.Installers) == 0 || slices.ContainsFunc(u.Installers, func(id manifest.ID) bool { return id.Kind != crossplane.Function })
}

// Outage reports whether the registry of the package could not be reached and may answer later. The registry adapter decides that.
func (u Unread) Outage() bool {
	err, ok := errors.AsType[interface {
		error
		Outage() bool
	}](u.Err)
	return ok && err.Outage()
}
