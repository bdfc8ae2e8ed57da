// Package approval holds what people are asked and what they approved. It is pure, and never sees a step of a plan.
package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/types"
)

// A Claim is what one person is asked once: whether one guard may let one change of one object pass.
type Claim struct {
	Guard  string      `json:"guard"`
	Action string      `json:"action"`
	Of     manifest.ID `json:"of"`
	Wants  string      `json:"wants,omitempty"` // the digest of the wanted content; "" for a prune
	Cause  Cause       `json:"cause,omitempty"`
}

// A Cause is which of a guard's questions a claim is; "" if the guard asks only one.
type Cause string

// Object returns the cause of a claim that concerns one live object, and no other object that takes its name. A claim without it may be
// about the object of any cluster.
func Object(uid types.UID) Cause { return Cause("object " + uid) }

// Uncounted is the cause of a claim whose amount is not known, so that an approval covers any. Once the amount is known, the claim is
// another one.
const Uncounted Cause = "uncounted"

// The causes of the guard schema. A person is asked about each by itself.
const (
	Breaks  Cause = "breaks"  // a schema in use breaks
	Storage Cause = "storage" // stored objects become unreadable
)

// Digest returns the digest of the claim. It is the same in a preview and in every cluster, unless the claim concerns one live object.
func (c Claim) Digest() string { return digest(c.String()) }

// String returns everything that the digest covers.
func (c Claim) String() string { return c.asks() + "\x00" + c.change() }

// Key identifies the claim in an inventory. Keys of claims about the same change differ only before the colon.
func (c Claim) Key() string {
	object := c
	object.Action, object.Wants = "", ""
	return c.asks() + ":" + digest(object.change())[:keyChars] + "." + digest(c.Wants)[:keyChars] + "." + digest(c.change())
}

// asks returns the guard, and its cause if it has several.
func (c Claim) asks() string {
	if c.Cause == "" {
		return c.Guard
	}
	return c.Guard + "/" + string(c.Cause)
}

// change returns the change as text.
func (c Claim) change() string {
	namespace := c.Of.Namespace
	if namespace == "" { // only a cluster spells out the namespace of a pruned object
		namespace = "default"
	}
	return strings.Join([]string{c.Action, c.Of.Group, c.Of.Kind, namespace, c.Of.Name, c.Wants}, "\x00")
}

// An Ask is a claim on a held step, with the amount that the step concerns now. The amount is not part of the digest, because it may
// differ between clusters.
type Ask struct {
	Claim
	Amount Amount `json:"amount,omitzero"`
}

// DigestsOf returns the digests of claims, sorted and without duplicates.
func DigestsOf(asks []Ask) []string {
	all := make([]string, len(asks))
	for i, c := range asks {
		all[i] = c.Digest()
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Whole returns the digest of all claims together.
func Whole(asks []Ask) string { return DigestOf(DigestsOf(asks)) }

// Total returns the sum of the amounts of claims.
func Total(asks []Ask) int {
	sum := 0
	for _, a := range asks {
		sum += a.Amount.Count()
	}
	return sum
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

// Into returns one digest for several, with their amounts, as a comment on a pull request into a target branch prints it. It is
// another digest in the comment of another target, so an approval does not outlive a change of the target.
func Into(target string, shown []string) string {
	return digest("into\x00" + target + "\n" + strings.Join(slices.Compact(slices.Sorted(slices.Values(shown))), "\n"))
}

// Show returns digests with the amounts of the claims that have one, for Into and Shown.
func Show(digests []string, asks []Ask) []string {
	amounts := map[string]Amount{}
	for _, a := range asks {
		amounts[a.Digest()] = amounts[a.Digest()].Or(a.Amount)
	}
	shown := make([]string, len(digests))
	for i, d := range digests {
		shown[i] = Left(d, amounts[d])
	}
	return shown
}

// Shown returns the digests and the amounts of a list of Show.
func Shown(shown []string) (digests []string, amounts map[string]Amount) {
	amounts = map[string]Amount{}
	for _, text := range shown {
		d, amount := leftOf(text)
		digests, amounts[d] = append(digests, d), amount
	}
	return digests, amounts
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:digestBytes])
}

const keyChars = 16 // of the parts of a key that nobody approves

const digestBytes = 16 // long enough to prevent an author from making two commits with the same approval
