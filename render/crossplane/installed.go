package crossplane

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An Installed package is an entry of the lock that Crossplane keeps in the cluster.
type Installed struct {
	Source   string `json:"-"`
	Version  string `json:"version,omitempty"` // the tag or digest with which it was installed
	Revision string `json:"revision,omitempty"`
}

// InstalledOf reads the lock of Crossplane. It returns the packages by source.
func InstalledOf(lock *unstructured.Unstructured) ([]Installed, error) {
	listed, _, err := unstructured.NestedSlice(lock.Object, "packages")
	if err != nil {
		return nil, fmt.Errorf("cannot read the lock of Crossplane: %w", err)
	}
	all := make([]Installed, 0, len(listed))
	for _, item := range listed {
		m, _ := item.(map[string]any)
		text := func(key string) string { s, _ := m[key].(string); return s }
		all = append(all, Installed{Source: text("source"), Version: text("version"), Revision: text("name")})
	}
	slices.SortFunc(all, func(a, b Installed) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Revision, b.Revision))
	})
	return all, nil
}

// String describes the package to the user.
func (l Installed) String() string {
	if l.Version == "" {
		return "not installed"
	}
	return "installed as " + l.Version + " (revision " + l.Revision + ")"
}

// generations is the highest generation of a package object that Is tries.
const generations = 4096

// Is reports whether the revision installs the image with this digest. Crossplane does not record the digest, but derives the name
// of the revision from it: up to v2.3 from the digest alone, later from the digest and the generation of the Provider,
// Configuration or Function.
func (l Installed) Is(digest string) bool {
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

// By reports whether the revision belongs to the package object with this name.
func (l Installed) By(name string) bool {
	const id = len("-0123456789ab")
	if len(l.Revision) <= id {
		return false
	}
	is := strings.ReplaceAll(name[:min(len(name), 50)], ".", "-")
	return strings.Trim(is, "-") == strings.Trim(l.Revision[:len(l.Revision)-id], "-")
}
