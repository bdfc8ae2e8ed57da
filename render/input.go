package render

import (
	"io/fs"
	"sync"

	"headgate.dev/headgate/render/catalogue"
)

// An Input is one commit, as bytes, with the packages that it mentions.
type Input struct {
	Revision string // the full commit id, or "" of a directory that is no commit
	Message  string // of the commit itself, and of no other that was merged with it
	Files    fs.FS  // the whole tree, safe for concurrent use; may offer Hash(path) (string, error), the Git blob id
	Path     string // the directory below which manifests are read; "" or "." is the root
	Source   SourceID

	// Packages are what registries answered to what is Missing. nil is that nobody asked them:
	// then nothing is said of packages that the tree does not hold.
	Packages []catalogue.Image
	// Installed are the packages of the cluster that the commit is for: dependencies stay in the
	// versions that are there, and tags the images that they were. nil is that nobody asked it.
	Installed []catalogue.Live
	// Images are the ImageConfigs of that cluster, by name.
	Images []catalogue.LiveConfig

	read *reading
}

// A reading is what Missing has read, for the Render that comes after it. It goes with that:
// who keeps an Input does not keep all its documents.
type reading struct {
	mu   sync.Mutex
	last *catalogue.Reading
}

// Missing are the packages that a commit mentions, itself or because of the Packages that it
// has, and that it has not. Of a commit that cannot be read nothing is missing: Render says why.
func Missing(in *Input, how Options) []catalogue.Request {
	if in.read == nil {
		in.read = &reading{}
	}
	r, err := in.open(how)
	if err != nil {
		return nil
	}
	in.read.mu.Lock()
	in.read.last = r
	in.read.mu.Unlock()
	return r.Missing(in.Packages, in.seen(how))
}

// open reads the files, if Missing has not.
func (in Input) open(how Options) (*catalogue.Reading, error) {
	if in.read != nil {
		in.read.mu.Lock()
		last := in.read.last
		in.read.last = nil
		in.read.mu.Unlock()
		if last != nil && last.Fits(how.reading()) {
			return last, nil
		}
	}
	return catalogue.Open(in.Files, in.Path, how.reading())
}

// catalogue is what the commit declares, with its packages.
func (in Input) catalogue(how Options) (catalogue.Catalogue, error) {
	r, err := in.open(how)
	if err != nil {
		return catalogue.Catalogue{}, err
	}
	return r.Catalogue(in.Packages, in.seen(how))
}

func (in Input) seen(how Options) catalogue.Seen {
	return catalogue.Seen{Installed: in.Installed, Images: in.Images, Installs: how.Owner == OwnerCrossplane || how.Owner == OwnerAuto}
}
