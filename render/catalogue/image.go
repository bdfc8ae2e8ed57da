package catalogue

import (
	"fmt"
	"io"
	"path"

	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/xpkg"
)

// maxPackage is how long the YAML of a package may be, with Crossplane and with us.
const maxPackage = 200 << 20

func isImageName(name string) bool { return path.Ext(name) == ".xpkg" }

// readImage reads the documents of an .xpkg file.
func (w *walk) readImage(name string) ([]*manifest.Document, error) {
	return w.reader.Stream(path.Join(name, "package.yaml"), name, func() (io.ReadCloser, error) {
		return xpkg.Open(func() (io.ReadCloser, error) { return w.files.Open(name) }, maxPackage)
	})
}

// unpack finds the packages of the images that were read. An image is what Crossplane gets,
// so what it refuses is refused.
func (w *walk) unpack() {
	for _, f := range w.found {
		if !f.image || f.failed {
			continue
		}
		p, err := w.packageIn(f.documents, f.path)
		if p == nil && err == nil {
			err = Errorf(manifest.Origin{Path: f.path}, "has no metadata, so it is no package")
		}
		if err != nil {
			w.problems = append(w.problems, ErrorsOf(manifest.Origin{Path: f.path}, err)...)
			f.documents = nil // what they are is not known
			continue
		}
		p.Image = true
		f.in = p
		w.packages = append(w.packages, p)
		for _, d := range f.documents {
			group, version := groupVersion(d.Header.APIVersion)
			switch kind := group + " " + d.Header.Kind; {
			case isMeta(d), decodes(kind, version):
			case d.Header.Kind == "":
				w.refuse(d.Origin, fmt.Errorf("this is no Kubernetes manifest, which Crossplane cannot decode: it refuses all of package %s", p.Name))
			default:
				w.refuse(d.Origin, fmt.Errorf("%s in %s is nothing that Crossplane can decode in a package: it refuses all of package %s", d.Header.Kind, d.Header.APIVersion, p.Name))
			}
		}
	}
}
