package plan

import (
	"encoding/hex"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// ProtectAnnotation requests that no client can delete the dependencies of an object before the object.
const ProtectAnnotation = "headgate.dev/protect-dependencies"

// UsagePrefix is the prefix of the names of Usages that Headgate adds.
const UsagePrefix = "headgate-"

// isOurUsage reports whether an object is a Usage that Headgate added to protect a dependency.
func isOurUsage(id manifest.ID) bool {
	sum, ours := strings.CutPrefix(id.Name, UsagePrefix)
	if !ours || !crossplane.IsUsage(id.GroupKind()) {
		return false
	}
	hash, err := hex.DecodeString(sum)
	return err == nil && len(hash) == UsageSum
}

// UsageSum is the number of hash bytes in the name of a Usage.
const UsageSum = 8

// ProtectFinalizer keeps two kinds of objects from being deleted: dependencies of other objects, if Crossplane serves no Usages,
// and definitions until Crossplane has noticed that their CRDs stay.
const ProtectFinalizer = "headgate.dev/protected"

// WithProtection returns the finalizers with ours.
func WithProtection(finalizers []string) []string {
	return append(WithoutProtection(finalizers), ProtectFinalizer)
}

// WithoutProtection returns the finalizers without ours.
func WithoutProtection(finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == ProtectFinalizer })
}
