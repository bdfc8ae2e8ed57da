package packages

import (
	"io"
	"slices"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Request asks for a package that a commit mentions and does not hold. Equal requests have the same answer.
type Request struct {
	Source      string               // its repository, by which Crossplane tells packages apart
	Version     string               // the tag or digest; "" is the newest that the constraints allow
	Constraints []string             // of the packages that depend on it, sorted: all have to hold
	Digest      string               // what the lock of the commit says the version is; "" where it does not
	Keeps       Keeps                // the content that the lock of the commit keeps of that image
	Installed   crossplane.Installed // as a cluster has it in this version; zero where it has not, or none was asked
	PullSecrets []string             // the names of Secrets that the commit has Crossplane pull it with
	PullPolicy  PullPolicy           // when Crossplane asks the registry
	Configs     *ImageConfigs        // the ImageConfigs of the commit and the cluster
	Origin      manifest.Origin      // the first place that asks for it
	Copied      bool                 // the tree has a copy, which counts where there is no answer
}

// PullPolicy is the packagePullPolicy of an object that installs a package; "" is PullIfNotPresent.
type PullPolicy string

// The policies that mean something else.
const (
	PullAlways PullPolicy = "Always" // a tag is looked at again every minute
	PullNever  PullPolicy = "Never"  // no registry is asked
)

// Secrets returns the names of the pull Secrets of a rewritten image.
func (r Request) Secrets(image string) []string {
	all := slices.Clone(r.PullSecrets)
	if one := r.Configs.Secret(image); one != "" && !slices.Contains(all, one) {
		all = append(all, one)
	}
	return all
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
	Version string                        // the tag or digest that was taken
	Digest  string                        // of the image
	Open    func() (io.ReadCloser, error) // its YAML; as often as it takes
	Err     error                         // why there is none

	// Kept is set if Open opens the content that the commit keeps: the hash of that content, and why the image could not be had.
	Kept *catalogue.Kept

	Findings []manifest.Finding // findings about the image
}

// name returns what an image is called in places: the digest of one that has no tag is cut.
func (i Image) name() string {
	if crossplane.IsDigest(i.Version) {
		return i.Request.Source + "@" + i.Version[:len("sha256:")+12]
	}
	return crossplane.Image(i.Request.Source, i.Version)
}
