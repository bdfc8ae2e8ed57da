package inventory

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An ApprovalPlace is a place where a person gives an approval, and from which a person withdraws it.
type ApprovalPlace string

// The places of approvals.
const (
	OnSync    ApprovalPlace = "Sync"    // the annotation of the Sync
	OnRun     ApprovalPlace = "Run"     // the flags of a process that runs continuously
	OnCommand ApprovalPlace = "Command" // the flags of a command that runs one pass
	InGit     ApprovalPlace = "Git"     // the file of approvals in the commit
	InComment ApprovalPlace = "Comment" // a comment on the pull request of a commit
	InReview  ApprovalPlace = "Review"  // a review of that pull request
)

// InMessage is the place of an approval in a commit message. Older versions counted these.
const InMessage ApprovalPlace = "Message"

// ApprovalPlaces lists all places that an approval can be withdrawn from.
var ApprovalPlaces = []ApprovalPlace{OnCommand, InComment, InGit, InReview, OnRun, OnSync} // sorted

// A Grant records an approval that Headgate used, so that the approval counts only once.
type Grant struct {
	Digest string   `json:"digest"`           // AnyDigest stands for every approval that a lost inventory may have used
	Of     string   `json:"of,omitempty"`     // the ID of the approval, if it has one; using one of its digests uses all of them
	Commit string   `json:"commit,omitempty"` // the commit with the approved steps; the grant ends with it
	By     string   `json:"by,omitempty"`     // who approved, if known
	Given  bool     `json:"given,omitempty"`  // the approval is still in the place where a person gave it
	Left   []string `json:"left,omitempty"`   // the steps that are still to be carried out

	At  *metav1.Time    `json:"at,omitempty"`  // when a plan used it
	How []ApprovalPlace `json:"how,omitempty"` // the places of the approval at that time, or InMessage

	// On holds the places where passes have seen the approval, because each pass reads only some places. If the grant
	// is Given and an older version did not record places, the approval may be in any place.
	On []ApprovalPlace `json:"on,omitempty"`

	unknown unknown
}

// UnmarshalJSON reads a grant and preserves the fields that it does not know.
func (g *Grant) UnmarshalJSON(data []byte) error {
	type plain Grant
	rest, err := unmarshal(data, (*plain)(g))
	g.unknown = rest
	return err
}

// MarshalJSON writes a grant, including the fields that were preserved.
func (g Grant) MarshalJSON() ([]byte, error) {
	type plain Grant
	return marshal(plain(g), g.unknown)
}

// AnyDigest is the digest of the first grant in a rebuilt inventory. The grants of the lost inventory are unknown, so
// each existing approval may have been used.
const AnyDigest = "any"

// MostGrants is the maximum number of remembered grants whose approval no longer exists anywhere. They only matter if a branch is
// reset. Headgate never forgets a grant whose approval still exists, because the approval would count again.
const MostGrants = 256

// Places returns the places that may contain the approval of a grant.
func (g Grant) Places() []ApprovalPlace {
	switch {
	case !g.Given:
		return nil
	case len(g.On) == 0:
		return []ApprovalPlace{OnCommand, InGit, OnRun, OnSync} // every place that versions without this record read
	}
	return g.On
}

// forgeAge is the age in nanoseconds at which no approval remains on a forge: eight days, one more than its validity.
const forgeAge = 8 * 24 * 3600 * 1e9

// Aged returns a grant without the places on a forge once the approval has expired there. Passes read approvals on a
// forge only while they hold something, so they do not notice its expiry.
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
