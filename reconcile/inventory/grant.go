package inventory

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An ApprovalPlace is where an approval stands until a person takes it out.
type ApprovalPlace string

// The places of approvals.
const (
	OnSync    ApprovalPlace = "Sync"    // the annotation of the Sync
	OnRun     ApprovalPlace = "Run"     // the flags of a process that goes on making passes
	OnCommand ApprovalPlace = "Command" // the flags of a command that makes one pass
	InGit     ApprovalPlace = "Git"     // the file of approvals in the commit
	InComment ApprovalPlace = "Comment" // a comment on the pull request of a commit
	InReview  ApprovalPlace = "Review"  // a review of that pull request
)

// InMessage is where an approval was that stands nowhere: the message of the commit.
const InMessage ApprovalPlace = "Message"

// ApprovalPlaces are all of them.
var ApprovalPlaces = []ApprovalPlace{OnCommand, InComment, InGit, InReview, OnRun, OnSync} // sorted

// Listing are the places that list digests of single steps until they expire. An approval there is of any of the steps that it
// lists, in every commit.
var Listing = []ApprovalPlace{InComment, InGit, InReview}

// Approvals are the digests that users gave, by place. A place that is no key was not read by the pass.
type Approvals map[ApprovalPlace][]string

// Places returns where a digest stands, sorted.
func (a Approvals) Places(digest string) []ApprovalPlace {
	var on []ApprovalPlace
	for _, place := range slices.Sorted(maps.Keys(a)) {
		if slices.Contains(a[place], digest) {
			on = append(on, place)
		}
	}
	return on
}

// Digests returns all of them, sorted, each once.
func (a Approvals) Digests() []string {
	all := slices.Sorted(func(yield func(string) bool) {
		for _, given := range a {
			for _, digest := range given {
				if !yield(digest) {
					return
				}
			}
		}
	})
	return slices.Compact(all)
}

// A Grant is an approval that was made use of. It is remembered so that it counts once.
type Grant struct {
	Digest string   `json:"digest"`           // anyDigest stands for all that an inventory that was lost may have held
	Commit string   `json:"commit,omitempty"` // the commit with the approved steps; the grant ends with it
	By     string   `json:"by,omitempty"`     // who approved, if that is known: a name in Git, the key that signed a commit
	Given  bool     `json:"given,omitempty"`  // it still stands where a person gave it
	Left   []string `json:"left,omitempty"`   // the steps that are not carried out yet

	At  *metav1.Time    `json:"at,omitempty"`  // when a plan made use of it
	How []ApprovalPlace `json:"how,omitempty"` // where it stood then, or InMessage

	// On holds the places of the approval that passes have seen; each pass reads only some places. If it is Given and
	// an older version did not record the place, it may be in any place.
	On []ApprovalPlace `json:"on,omitempty"`

	unknown unknown
}

// UnmarshalJSON keeps fields that this binary does not know.
func (g *Grant) UnmarshalJSON(data []byte) error {
	type plain Grant
	rest, err := unmarshal(data, (*plain)(g))
	g.unknown = rest
	return err
}

// MarshalJSON writes them again.
func (g Grant) MarshalJSON() ([]byte, error) {
	type plain Grant
	return marshal(plain(g), g.unknown)
}

// AnyDigest is the digest of the grant that a rebuilt inventory begins with. The grants of the one that
// was lost are lost, so whatever stands somewhere may have been made use of.
const AnyDigest = "any"

// MostGrants is how many grants are remembered that matter only if a branch is set back: those whose
// approval stands nowhere any more. A grant whose approval stands is never forgotten, or the approval
// would count again.
const MostGrants = 256

// places returns where the approval of a grant may stand.
func (g Grant) places() []ApprovalPlace {
	switch {
	case !g.Given:
		return nil
	case len(g.On) == 0:
		return []ApprovalPlace{OnCommand, InGit, OnRun, OnSync} // all that a version which recorded none read
	}
	return g.On
}

// IsListed reports whether the approval of a grant stands where single steps are listed.
func (g Grant) IsListed() bool {
	return slices.ContainsFunc(g.On, func(place ApprovalPlace) bool { return slices.Contains(Listing, place) })
}

// forgeAge is after how many nanoseconds no approval on a forge stands: eight days, one more than it is valid.
const forgeAge = 8 * 24 * 3600 * 1e9

// Aged returns a grant without the places of a forge once the approval has expired there. Passes ask a forge only while they
// hold something, so they do not see it go.
func (g Grant) Aged(now metav1.Time) Grant {
	if now.IsZero() || g.At == nil || now.Sub(g.At.Time) < forgeAge {
		return g
	}
	on := slices.DeleteFunc(slices.Clone(g.On), func(place ApprovalPlace) bool { return place == InComment || place == InReview })
	if len(on) == len(g.On) {
		return g
	}
	if g.On = on; len(on) == 0 {
		g.Given, g.On = false, nil
	}
	return g
}

// IsOf reports whether a grant makes use of an approval with this digest, for all that is known.
func (g Grant) IsOf(digest string) bool { return g.Digest == digest || g.Digest == AnyDigest }

// spends reports whether an approval in a place does not count because of this grant. An approval on the command line
// is a new one, even if the same approval on a Sync was used already.
func (g Grant) spends(digest string, place ApprovalPlace) bool {
	return g.IsOf(digest) && slices.Contains(g.places(), place) ||
		g.Digest == digest && g.Given && place != OnCommand
}

// Counts reports whether an approval was given that no grant has made use of.
func (a Approvals) Counts(digest string, grants []Grant) bool {
	return slices.ContainsFunc(a.Places(digest), func(place ApprovalPlace) bool {
		return !slices.ContainsFunc(grants, func(g Grant) bool { return g.spends(digest, place) })
	})
}

// Standing returns a grant with the places where its approval stands now. A place that was not read
// stays as it was.
func (a Approvals) Standing(g Grant) Grant {
	before := g.places()
	if len(before) == 0 || len(a) == 0 {
		return g
	}
	on := slices.DeleteFunc(slices.Clone(before), func(place ApprovalPlace) bool {
		_, read := a[place]
		return read
	})
	if on = append(on, a.Places(g.Digest)...); len(on) == 0 {
		g.Given, g.On = false, nil
		return g
	}
	slices.Sort(on)
	g.On = on
	return g
}

// FirstRead returns grants of the approvals that stand in places that are read for the first time since
// the inventory was lost.
func (a Approvals) FirstRead(lost Grant) []Grant {
	var all []Grant
	for _, digest := range a.Digests() {
		on := slices.DeleteFunc(a.Places(digest), func(place ApprovalPlace) bool { return !slices.Contains(lost.places(), place) })
		if len(on) > 0 {
			all = append(all, Grant{Digest: digest, Given: true, On: on})
		}
	}
	return all
}
