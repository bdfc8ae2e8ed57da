package render

import (
	"io/fs"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/packages"
)

// An Input is one commit, as bytes, with the packages that it mentions.
type Input struct {
	Revision string // the full commit id, or "" of a directory that is no commit
	Message  string // of the commit itself, and of no other that was merged with it
	SignedBy string // the fingerprint of the listed key that signed the commit, which was verified; "" if none did
	Files    fs.FS  // the whole tree, safe for concurrent use; may offer Hash(path) (string, error), the Git blob id
	Path     string // the directory below which manifests are read; "" or "." is the root
	Source   SourceID

	// Packages are what registries answered to what is Missing. nil means that no registry was asked:
	// then Headgate reports nothing about packages that the tree does not hold.
	Packages []packages.Image
	// Installed are the packages of the cluster that the commit is for: dependencies stay in the
	// versions that are there, and tags the images that they were. nil means that no cluster was asked.
	Installed []crossplane.Installed
	// Images are the ImageConfigs of that cluster, by name.
	Images []packages.LiveConfig

	// Documents are what Read returned for Files, so that Render need not read them again. It may be nil.
	// An Input that is kept should not have them: they are larger than the rest.
	Documents *Documents
}

// Documents are the files of a commit, as Read read them, with the packages that it was given. It is a
// value: no method changes it. It is safe for concurrent use.
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

// With returns the documents with the packages of an input instead of their previous packages. It reads those packages
// that it has not read yet.
func (d Documents) With(in Input, how Options) Documents {
	d.commit = d.commit.With(in.Packages, packages.Live{
		Installed: in.Installed,
		Images:    in.Images,
		Installs:  how.Owner == OwnerCrossplane || how.Owner == OwnerAuto,
	})
	return d
}

// Missing returns the packages that a commit mentions, itself or because of the packages that it has, and
// that it does not have. For a commit that cannot be rendered it returns nothing: Render reports why.
func (d Documents) Missing() []packages.Request { return d.commit.Missing() }

// catalogue returns what the commit declares, with its packages.
func (in Input) catalogue(how Options) (catalogue.Catalogue, error) {
	if in.Documents == nil || !in.Documents.how.Equal(how.reading()) || in.Documents.unlocked != how.Unlocked {
		d, err := Read(in, how)
		if err != nil {
			return catalogue.Catalogue{}, err
		}
		in.Documents = &d
	}
	return in.Documents.With(in, how).commit.Catalogue()
}
