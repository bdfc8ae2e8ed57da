// Package catalogue sorts the documents of a commit into definitions, policies,
// packages and the rest. Which definitions are active is for package activation.
package catalogue

import (
	"errors"
	"slices"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Catalogue is what a commit declares.
type Catalogue struct {
	Definitions []*Definition            // by name, unique
	Policies    []Policy                 // by name
	Packages    []Package                // by origin
	Objects     []manifest.Object        // all other objects to apply, by identity, including policies, exempt CRDs and webhook configurations of packages
	Shipped     map[manifest.ID]*Package // of Objects, those that came with a package
	Details     []Details                // by origin; Describe gives them to definitions
	Directories []string                 // directories with manifests, sorted, also if none is applied; without ignored ones
	Unread      []Unread                 // packages of registries that could not be read, by source
	Beside      []Beside                 // images that have a copy in the tree, by source
	Skipped     Skipped
	Omitted     []Omitted          // what was skipped on purpose, by origin
	Findings    []manifest.Finding // sorted
}

// A Beside is the image of a package that also has a copy in the tree. An object of the commit lets Crossplane install
// the image, regardless of the copy.
type Beside struct {
	Package     Package
	Definitions []*Definition
	Objects     []manifest.Object
}

// State is the state that a definition sets itself: spec.state of an MRD.
type State string

// The states. None is what the API server defaults to Inactive.
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
	State   State    // as declared; a converted one is Active where its package is not safe-start
	Paused  bool     // crossplane.io/paused: "true"
	FromCRD bool     // converted; otherwise the document is a native MRD
	Package *Package // the package that it came with; nil outside of packages

	// ConnectionDetails are what an object of the commit says, beside what the document does.
	ConnectionDetails []ConnectionDetail

	Document *manifest.Document // nil of a definition that only the cluster has
}

// id returns the identity of the object that declares it.
func (d *Definition) id() manifest.ID {
	if d.FromCRD {
		return manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: d.Name}
	}
	return crossplane.MRD(d.Name)
}

// Origin is where the commit declares it; zero where only the cluster has it.
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
	Origin manifest.Origin // the line of the entry where it can be told, else of the document
}

// A Package is a provider, configuration or function package in the tree, or in a registry.
type Package struct {
	Name      string // metadata.name of crossplane.yaml, or as declared
	Kind      string // Provider, Configuration, Function
	Directory string // slash separated, from the root of the commit; the file, of one in an image; what is pulled, of one in a registry
	Image     bool   // it is an image, as Crossplane installs it, and no directory
	SafeStart bool
	Origin    manifest.Origin // of crossplane.yaml; the directory of one that is declared
	Release   string          // the release that it is, as far as its metadata names one

	// Installer is the Provider, Configuration or Function object of the commit that
	// has Crossplane install the same package, itself or as a dependency; zero where there is
	// none.
	Installer manifest.ID

	// These are set for a package in a registry.
	Source     string                // its repository, by which packages are told apart
	Version    string                // the tag or digest that was taken
	Digest     string                // digest of the image that the reference resolved to
	Mentioned  manifest.Origin       // the first place that asks for it
	Named      manifest.ID           // the object of the commit that names it; zero of a dependency
	Installers []manifest.ID         // all that have Crossplane install it, the Installer first
	Manual     bool                  // a person has to let in every new version
	Installed  *crossplane.Installed // what a cluster has of it; nil: none was asked, zero: nothing

	Depends []Dependency

	Project *Project // of one that is not built yet; nil of every other
	Kept    *Kept    // of one that was read from the content that the commit keeps; nil of every other
}

// Kept describes the content that a commit keeps of a package, which was read because the image cannot be had. Inactive
// definitions are without their schemas.
type Kept struct {
	File, Hash string
	Err        error // why the image cannot be had
	Documents  []*manifest.Document
}

// Outage reports whether the registry of the image may answer later.
func (k *Kept) Outage() bool { return Unread{Err: k.Err}.Outage() }

// Pulled reports whether a package comes from a registry. It may be asked of nil.
func (p *Package) Pulled() bool { return p != nil && p.Digest != "" }

// InstalledBy reports whether an object of the commit has Crossplane install the package.
func (p *Package) InstalledBy(id manifest.ID) bool {
	return p.Installer == id || slices.Contains(p.Installers, id)
}

// An Unread package is mentioned in the commit, but its content is not known.
type Unread struct {
	Source     string
	Wanted     string        // what the commit asks for: an image, or a constraint
	Installers []manifest.ID // the objects of the commit that have Crossplane install it
	Origin     manifest.Origin
	Err        error
}

// Outage reports whether the registry of the package could not be asked, and may answer later. The adapter that asks registries
// decides that.
func (u Unread) Outage() bool {
	err, ok := errors.AsType[interface {
		error
		Outage() bool
	}](u.Err)
	return ok && err.Outage()
}
