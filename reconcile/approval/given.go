package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Approval is what a person gave in one place, at one time.
type Approval struct {
	// ID distinguishes it from an earlier approval of the same digests: the comment, the content of the entry in Git, or the time
	// in the annotation. If it is "", the same digest is another approval only after it was taken out of the place.
	ID      string      `json:"id,omitempty"`
	Digests []string    `json:"digests"`
	By      string      `json:"by,omitempty"`     // "" if the place does not name anyone
	Expires metav1.Time `json:"expires,omitzero"` // zero if it does not expire

	// UpTo is the sum of the amounts that it covers, if the approver wrote a number. Otherwise, it covers the amounts that the
	// approver saw, by the digests of claims, and no other amount.
	UpTo  int               `json:"upTo,omitempty"`
	Shown map[string]Amount `json:"shown,omitempty"`
}

// Expired reports whether the approval does not count any more. Without a clock, nothing that expires counts.
func (a Approval) Expired(now metav1.Time) bool {
	return !a.Expires.IsZero() && (now.IsZero() || !now.Before(&a.Expires))
}

// EntryID returns the ID of an entry in Git: a hash of everything that it contains.
func EntryID(digests []string, by, why string, expires metav1.Time, upTo int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %d", digests, by, why, expires.Unix(), upTo))
	return "entry " + hex.EncodeToString(sum[:8])
}

// Typed returns approvals of single digests that have no ID and cover no amount.
func Typed(digests ...string) []Approval { return UpTo(0, digests...) }

// UpTo returns approvals of single digests that have no ID, each with an amount.
func UpTo(n int, digests ...string) []Approval {
	var all []Approval
	for _, d := range digests {
		all = append(all, Approval{Digests: []string{d}, UpTo: n})
	}
	return all
}

// Listing contains the places that list digests of single claims until they expire. An approval there covers each claim that it
// lists, also in later commits.
var Listing = []inventory.ApprovalPlace{inventory.InComment, inventory.InGit, inventory.InReview}

// IsListed reports whether the approval of a grant was seen in a place of Listing.
func IsListed(g inventory.Grant) bool {
	return slices.ContainsFunc(g.On, func(place inventory.ApprovalPlace) bool { return slices.Contains(Listing, place) })
}

// Given holds the approvals that people gave, by place. The pass did not read a place without a key.
type Given map[inventory.ApprovalPlace][]Approval

// Listed returns the approvals in the places of Listing.
func (a Given) Listed() Given {
	all := Given{}
	for _, place := range Listing {
		if given, read := a[place]; read {
			all[place] = given
		}
	}
	return all
}

// At returns the approvals that have not expired.
func (a Given) At(now metav1.Time) Given {
	all := Given{}
	for place, given := range a {
		all[place] = slices.DeleteFunc(slices.Clone(given), func(one Approval) bool { return one.Expired(now) })
	}
	return all
}

// Places returns the places that contain a digest, sorted.
func (a Given) Places(digest string) []inventory.ApprovalPlace {
	return a.where(func(one Approval) bool { return slices.Contains(one.Digests, digest) })
}

func (a Given) where(is func(Approval) bool) []inventory.ApprovalPlace {
	var on []inventory.ApprovalPlace
	for _, place := range a.places() {
		if slices.ContainsFunc(a[place], is) {
			on = append(on, place)
		}
	}
	return on
}

// places returns the places that were read, sorted.
func (a Given) places() []inventory.ApprovalPlace { return slices.Sorted(maps.Keys(a)) }

// read reports whether the approvals of a place are known.
func (a Given) read(place inventory.ApprovalPlace) bool {
	_, is := a[place]
	return is
}

// All returns the approvals of all places.
func (a Given) All() []Approval {
	var all []Approval
	for _, place := range a.places() {
		all = append(all, a[place]...)
	}
	return all
}

// Digests returns the digests of all places, sorted and without duplicates.
func (a Given) Digests() []string {
	var all []string
	for _, one := range a.All() {
		all = append(all, one.Digests...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Unused returns the approvals of a digest that no grant has used.
func (a Given) Unused(digest string, grants []inventory.Grant) Given {
	unused := Given{}
	for place, given := range a {
		for _, one := range given {
			if slices.Contains(one.Digests, digest) && !slices.ContainsFunc(grants, func(g inventory.Grant) bool { return spends(g, one, place, digest) }) {
				unused[place] = append(unused[place], one)
			}
		}
	}
	return unused
}

// spends reports whether a grant already used an approval. Using one of its digests uses the whole approval.
func spends(g inventory.Grant, one Approval, place inventory.ApprovalPlace, digest string) bool {
	switch {
	case g.Digest == inventory.AnyDigest:
		return slices.Contains(g.Places(), place)
	case g.Of != "": // an entry that a later commit adds again is a new approval
		return g.Of == one.ID && (g.Given || place != inventory.InGit)
	case one.ID != "": // an older version recorded only the digest
		return g.Given && slices.Contains(one.Digests, g.Digest) && slices.Contains(g.Places(), place)
	case !g.Given, g.Digest != digest:
		return false
	}
	// An approval on the command line is a new one, even if an equal approval on a Sync was used.
	return place != inventory.OnCommand || slices.Contains(g.Places(), place)
}

// Holds reports whether the approval that a grant used is still given.
func (a Given) Holds(g inventory.Grant) bool { return len(a.of(g)) > 0 }

// Withdrawn reports whether a person has taken the approval of a grant out of the places where it was given. The flags of a process are never
// taken out: the next process has others.
func (a Given) Withdrawn(g inventory.Grant) bool {
	for _, place := range g.How {
		if !a.read(place) || place == inventory.OnCommand || place == inventory.OnRun {
			return false
		}
	}
	return len(g.How) > 0 && !a.Holds(g)
}

// of returns the places that contain the approval of a grant.
func (a Given) of(g inventory.Grant) []inventory.ApprovalPlace {
	if g.Of == "" {
		return a.Places(g.Digest)
	}
	return a.where(func(one Approval) bool { return one.ID == g.Of })
}

// Standing returns a grant with the current places of its approval. It keeps a place that the pass did not read.
func (a Given) Standing(g inventory.Grant) inventory.Grant {
	before := g.Places()
	if len(before) == 0 || len(a) == 0 {
		return g
	}
	on := slices.DeleteFunc(slices.Clone(before), a.read)
	if on = append(on, a.of(g)...); len(on) == 0 {
		g.Given, g.On = false, nil
		return g
	}
	slices.Sort(on)
	g.On = on
	return g
}

// FirstRead returns grants for the approvals in places that a pass reads for the first time since the inventory was lost.
func (a Given) FirstRead(lost inventory.Grant) []inventory.Grant {
	read := Given{}
	for _, place := range lost.Places() {
		if given, has := a[place]; has {
			read[place] = given
		}
	}
	var all []inventory.Grant
	for _, digest := range read.Digests() {
		all = append(all, read.Grants(digest)...)
	}
	return all
}

// Grants returns the records of the use of all approvals of a digest: one for each approval with an ID, and one for all others.
func (a Given) Grants(digest string) []inventory.Grant {
	without := inventory.Grant{Digest: digest, Given: true}
	var all []inventory.Grant
	for _, place := range a.Places(digest) {
		for _, one := range a[place] {
			switch {
			case !slices.Contains(one.Digests, digest):
			case one.ID != "":
				all = append(all, inventory.Grant{Digest: digest, Of: one.ID, By: one.By, Given: true, On: []inventory.ApprovalPlace{place}})
			case !slices.Contains(without.On, place):
				without.On = append(without.On, place)
			}
		}
	}
	if len(without.On) > 0 {
		all = append(all, without)
	}
	return all
}
