// Package approval holds what people are asked and what they approved. It is pure, and never sees a step of a plan.
package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// A Claim is what one person is asked once: whether one guard may let one change of one object pass.
type Claim struct {
	Guard  string      `json:"guard"`
	Action string      `json:"action"`
	Of     manifest.ID `json:"of"`
	Wants  string      `json:"wants,omitempty"` // the digest of the wanted content; "" for a prune
}

// Digest returns the digest of the claim. It is the same in a preview and in every cluster.
func (c Claim) Digest() string { return digest(c.String()) }

// String returns everything that the digest covers.
func (c Claim) String() string { return c.Guard + "\x00" + c.change() }

// Key identifies the claim in an inventory. Keys of claims about the same change differ only before the colon.
func (c Claim) Key() string { return c.Guard + ":" + digest(c.change()) }

// change returns the change as text.
func (c Claim) change() string {
	namespace := c.Of.Namespace
	if namespace == "" { // only a cluster spells out the namespace of a pruned object
		namespace = "default"
	}
	return strings.Join([]string{c.Action, c.Of.Group, c.Of.Kind, namespace, c.Of.Name, c.Wants}, "\x00")
}

// DigestsOf returns the digests of claims, sorted and without duplicates.
func DigestsOf(claims []Claim) []string {
	all := make([]string, len(claims))
	for i, c := range claims {
		all[i] = c.Digest()
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// DigestOf returns one digest for several; for a single one, it returns the same. An approval of the result covers each of them, and
// the result proves the list of them.
func DigestOf(digests []string) string {
	digests = slices.Compact(slices.Sorted(slices.Values(digests)))
	if len(digests) == 1 {
		return digests[0]
	}
	return digest(strings.Join(digests, "\n"))
}

// Into returns one digest for several, as a comment on a pull request into a target branch prints it. It is another digest in the
// comment of another target, so an approval does not outlive a change of the target.
func Into(target string, digests []string) string {
	return digest("into\x00" + target + "\n" + strings.Join(slices.Compact(slices.Sorted(slices.Values(digests))), "\n"))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:digestBytes])
}

const digestBytes = 16 // long enough to prevent an author from making two commits with the same approval
