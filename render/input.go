package render

import (
	"io/fs"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/packages"
)

// An Input is a commit as bytes, with the packages that it mentions.
type Input struct {
	Revision string // the full commit ID, or "" for a directory that is not a commit
	Files    fs.FS  // the whole tree, safe for concurrent use; may offer Hash(path) (string, error), the Git blob id
	Path     string // the directory with the manifests; "" or "." is the root
	Source   SourceID

	// Packages holds the answers of registries to the requests of Missing. nil means that no registry was asked: then Headgate
	// reports nothing about packages that are not in the tree.
	Packages []packages.Image
	// Installed holds the packages of the target cluster: dependencies keep their installed versions, and tags keep their images.
	// nil means that no cluster was asked.
	Installed []crossplane.Installed
	// Applied holds the images that the sync applied for tags and ranges of versions, if it creates the CRDs. They stay while the commit
	// names the same tag or a range with the same version, as Crossplane's do, unless packagePullPolicy is Always.
	Applied []packages.Locked
	// Images holds the ImageConfigs of that cluster, by name.
	Images []packages.LiveConfig

	// Documents is the result of Read for Files, so that Render need not read them again. It may be nil. An Input that is kept
	// should have none: they are larger than the rest.
	Documents *Documents
}

// Documents holds the files of a commit, as read by Read, with the packages that Read was given. No method changes it, so it is
// safe for concurrent use.
type Documents struct {
	how      catalogue.Options
	unlocked bool
	commit   packages.Commit
}

// Read reads the files of a commit. It returns the errors of Render.
func Read(in Input, how Options) (Documents, error) {
	docs, err := catalogue.Open(in.Files, in.Path, how.reading())
	if err != nil {
		return Documents{}, err
	}
	return Documents{how.reading(), how.Unlocked, packages.Of(docs, how.Unlocked)}, nil
}

// With returns the documents with the packages of an input in place of the previous packages. It reads only packages that were not
// read before.
func (d Documents) With(in Input, how Options) Documents {
	d.commit = d.commit.With(in.Packages, packages.Live{
		Installed: in.Installed,
		Applied:   in.Applied,
		Images:    in.Images,
		Installs:  how.Owner == OwnerCrossplane || how.Owner == OwnerAuto,
	})
	return d
}

// Missing returns the packages that a commit or its packages mention but that the input does not contain. It returns nothing for a
// commit that cannot be rendered: Render reports the error.
func (d Documents) Missing() []packages.Request { return d.commit.Missing() }

// catalogue returns everything that the commit declares, including its packages.
func (in Input) catalogue(how Options) (catalogue.Catalogue, error) {
	commit, err := in.commit(how)
	if err != nil {
		return catalogue.Catalogue{}, err
	}
	return commit.Catalogue()
}

// commit returns the documents of the commit with its packages.
func (in Input) commit(how Options) (packages.Commit, error) {
	if in.Documents == nil || !in.Documents.how.Equal(how.reading()) || in.Documents.unlocked != how.Unlocked {
		d, err := Read(in, how)
		if err != nil {
			return packages.Commit{}, err
		}
		in.Documents = &d
	}
	return in.Documents.With(in, how).commit, nil
}
