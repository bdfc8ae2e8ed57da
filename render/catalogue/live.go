package catalogue

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// A Live package is one that a cluster has, as the lock of Crossplane says.
type Live struct {
	Source   string `json:"-"`
	Version  string `json:"version,omitempty"` // the tag or digest that it was installed by
	Revision string `json:"revision,omitempty"`
}

// String is for people.
func (l Live) String() string {
	if l.Version == "" {
		return "not installed"
	}
	return "installed as " + l.Version + " (revision " + l.Revision + ")"
}

// generations is up to which one of its object a revision of an image is recognised.
const generations = 4096

// Is says whether a revision is that of an image. Crossplane does not write down the digest of
// what it installed, but names the revision by it: up to v2.3 by the digest alone, then by the
// digest and the generation of the Provider, Configuration or Function.
func (l Live) Is(digest string) bool {
	hash := strings.TrimPrefix(digest, "sha256:")
	is := func(id string) bool { return strings.HasSuffix(l.Revision, "-"+id[:12]) }
	if !IsDigest(digest) || is(hash) {
		return IsDigest(digest)
	}
	for g := range int64(generations) {
		sum := sha256.Sum256([]byte(hash + "|" + strconv.FormatInt(g+1, 10)))
		if is(hex.EncodeToString(sum[:])) {
			return true
		}
	}
	return false
}

// By says whether a revision is that of a package object of a name.
func (l Live) By(name string) bool {
	const id = len("-0123456789ab")
	if len(l.Revision) <= id {
		return false
	}
	is := strings.ReplaceAll(name[:min(len(name), 50)], ".", "-")
	return strings.Trim(is, "-") == strings.Trim(l.Revision[:len(l.Revision)-id], "-")
}

// Seen is what a cluster has that decides which packages there are. nil is that it was not asked.
type Seen struct {
	Installed []Live
	Images    []LiveConfig
	Installs  bool // Crossplane installs packages: images of which the tree has a copy are read, too
}
