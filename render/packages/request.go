package packages

import (
	"cmp"
	"io"
	"slices"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Request asks for a package that a commit mentions but does not contain. Equal requests have the same answer.
type Request struct {
	Source      string               // its repository, which identifies the package in Crossplane
	Version     string               // the tag or digest; "" means the newest version that the constraints allow
	Named       string               // the image as an object names it, if it has a tag and a digest; Version is the digest
	Constraints []string             // of the packages that depend on it, sorted; all must be satisfied
	Digest      string               // the digest of the version in the commit's lock; "" if the lock does not record it
	Applied     bool                 // Digest is that of the image which the sync applied for the version, and not of a lock
	Keeps       Keeps                // the content of the image that the commit's lock keeps
	Installed   crossplane.Installed // the package in the cluster, if it has this version; otherwise zero
	PullSecrets []string             // the names of the pull Secrets in the commit
	PullPolicy  PullPolicy           // when Crossplane contacts the registry
	Configs     *ImageConfigs        // the ImageConfigs of the commit and the cluster
	Origin      manifest.Origin      // the first place that requests it
	Copied      bool                 // the tree has a copy, which counts if there is no answer
}

// PullPolicy is the packagePullPolicy of an object that installs a package; "" means PullIfNotPresent.
type PullPolicy string

// The policies with an effect.
const (
	PullAlways PullPolicy = crossplane.PullAlways // Crossplane resolves a tag again every minute
	PullNever  PullPolicy = "Never"               // Crossplane contacts no registry
)

// Secrets returns the names of the pull Secrets of a rewritten image.
func (r Request) Secrets(image string) []string {
	all := slices.Clone(r.PullSecrets)
	if one := r.Configs.Secret(image); one != "" && !slices.Contains(all, one) {
		all = append(all, one)
	}
	return all
}

// Image returns the image in a version, as Crossplane compares it with the prefixes of ImageConfigs.
func (r Request) Image(version string) string {
	return cmp.Or(r.Named, crossplane.Image(r.Source, version))
}

// wanted describes the request to the user.
func (r Request) wanted() string {
	if r.Version != "" {
		return crossplane.Image(r.Source, r.Version)
	}
	return r.Source + " in version " + quoted(r.Constraints, " and ")
}

// An Image is the answer to a Request.
type Image struct {
	Request Request
	Version string                        // the tag or digest that was used
	Digest  string                        // of the image
	Open    func() (io.ReadCloser, error) // opens its YAML; may be called several times
	Err     error                         // why there is no image

	// Kept is set if Open opens content that the commit keeps. It holds the hash of that content, and why the image was not
	// available.
	Kept *catalogue.Kept

	Findings []manifest.Finding // findings about the image
}

// name returns the name of an image in places. It shortens the digest of an image without a tag.
func (i Image) name() string {
	if crossplane.IsDigest(i.Version) {
		return i.Request.Source + "@" + i.Version[:len("sha256:")+12]
	}
	return crossplane.Image(i.Request.Source, i.Version)
}
