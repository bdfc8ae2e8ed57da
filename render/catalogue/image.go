package catalogue

import (
	"io"
	"path"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/xpkg"
)

// MaxPackage is the maximum size of a package's YAML, in Crossplane and in Headgate.
const MaxPackage = 200 << 20

// StreamName is the name of the file with a package's YAML in an image.
const StreamName = "package.yaml"

func isImageName(name string) bool { return path.Ext(name) == ".xpkg" }

// readImage reads the documents of an .xpkg file.
func (w *walk) readImage(name string) ([]*manifest.Document, error) {
	return w.reader.Stream(manifest.Stream{Name: path.Join(name, StreamName), File: name, Open: func() (io.ReadCloser, error) {
		return xpkg.Open(func() (io.ReadCloser, error) { return w.files.Open(name) }, MaxPackage)
	}})
}

// unpack finds the packages in the images of the commit. Crossplane installs such an image, so Headgate refuses what Crossplane
// would refuse.
func (w *walk) unpack() {
	for _, f := range w.found {
		if !f.image || f.failed {
			continue
		}
		problems := w.unpackImage(f)
		if f.in == nil {
			f.documents = nil // the documents of an invalid package are unknown
		} else {
			w.packages = append(w.packages, f.in)
		}
		w.problems = append(w.problems, problems...)
	}
}

// unpackImage finds the package in an image, and returns the reasons why Crossplane would refuse it.
func (w *walk) unpackImage(f *file) Errors {
	at := manifest.Origin{Path: f.path}
	p, err := w.packageIn(f.documents, f.path)
	if p == nil && err == nil {
		err = Errorf(at, "has no metadata, so it is not a package")
	}
	if err != nil {
		return ErrorsOf(at, err)
	}
	p.Image = true
	f.in = p
	var problems Errors
	for _, d := range f.documents {
		switch {
		case isMeta(d), crossplane.Decodes(d.Header.ID(), d.Header.Version()):
		case d.Header.Kind == "":
			problems = append(problems, Errorf(d.Origin, "this is not a Kubernetes manifest, so Crossplane refuses all of package %s", p.Name))
		default:
			problems = append(problems, Errorf(d.Origin, "%s in %s is not a kind that Crossplane can decode in a package: it refuses all of package %s", d.Header.Kind, d.Header.APIVersion, p.Name))
		}
	}
	return problems
}
