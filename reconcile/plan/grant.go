package plan

import (
	"maps"
	"slices"

	"headgate.dev/headgate/render/manifest"
)

// An ApprovalPlace is where an approval stands until a person takes it out.
type ApprovalPlace string

// The places of approvals.
const (
	OnSync    ApprovalPlace = "Sync"    // the annotation of the Sync
	OnRun     ApprovalPlace = "Run"     // the flags of a process that goes on making passes
	OnCommand ApprovalPlace = "Command" // the flags of a command that makes one pass
)

var approvalPlaces = []ApprovalPlace{OnCommand, OnRun, OnSync} // sorted

// Approvals are the digests that a person gave, by the place where they stand. Of a place that is no
// key, nothing is known: the pass did not read it.
type Approvals map[ApprovalPlace][]string

// of returns the places where a digest stands, sorted.
func (a Approvals) of(digest string) []ApprovalPlace {
	var on []ApprovalPlace
	for _, place := range slices.Sorted(maps.Keys(a)) {
		if slices.Contains(a[place], digest) {
			on = append(on, place)
		}
	}
	return on
}

// digests returns all of them, sorted, each once.
func (a Approvals) digests() []string {
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
	Commit string   `json:"commit,omitempty"` // of which it approved the steps; it dies with it
	Given  bool     `json:"given,omitempty"`  // it still stands where a person gave it
	Left   []string `json:"left,omitempty"`   // the steps that are not carried out yet

	// On is where it stands, as far as passes know: each of them reads some places only. Where it is
	// Given, and an older version did not record where, any place may be meant.
	On []ApprovalPlace `json:"on,omitempty"`
}

// anyDigest is the digest of the grant that a rebuilt inventory begins with. The grants of the one that
// was lost are lost, so whatever stands somewhere may have been made use of.
const anyDigest = "any"

// mostGrants is how many grants are remembered that matter only if a branch is set back: those whose
// approval stands nowhere any more. A grant whose approval stands is never forgotten, or the approval
// would count again.
const mostGrants = 256

// places returns where the approval of a grant may stand.
func (g Grant) places() []ApprovalPlace {
	switch {
	case !g.Given:
		return nil
	case len(g.On) == 0:
		return approvalPlaces
	}
	return g.On
}

// isOf reports whether a grant makes use of an approval with this digest, for all that is known.
func (g Grant) isOf(digest string) bool { return g.Digest == digest || g.Digest == anyDigest }

// spends reports whether an approval that stands in a place does not count because of this grant. What
// a person types for one pass is a new approval even if the same one, already used, stands on a Sync.
func (g Grant) spends(digest string, place ApprovalPlace) bool {
	return g.isOf(digest) && slices.Contains(g.places(), place) ||
		g.Digest == digest && g.Given && place != OnCommand
}

// counts reports whether an approval was given that no grant has made use of.
func (a Approvals) counts(digest string, grants []Grant) bool {
	return slices.ContainsFunc(a.of(digest), func(place ApprovalPlace) bool {
		return !slices.ContainsFunc(grants, func(g Grant) bool { return g.spends(digest, place) })
	})
}

// standing returns a grant with the places where its approval stands now. A place that was not read
// stays as it was.
func (a Approvals) standing(g Grant) Grant {
	before := g.places()
	if len(before) == 0 || len(a) == 0 {
		return g
	}
	on := slices.DeleteFunc(slices.Clone(before), func(place ApprovalPlace) bool {
		_, read := a[place]
		return read
	})
	if on = append(on, a.of(g.Digest)...); len(on) == 0 {
		g.Given, g.On = false, nil
		return g
	}
	slices.Sort(on)
	g.On = on
	return g
}

// isLost reports whether a sync applied objects, and the inventory that held its grants is gone. A pass
// stores the inventory before it applies anything.
func (o Observed) isLost() bool {
	if o.Offline || o.Looks || o.Inventory.ResourceVersion != "" {
		return false
	}
	if o.Inventory.Rebuilt || len(o.Copies) > 0 {
		return true
	}
	for _, live := range o.Objects {
		if Ours(live, o.Inventory.Sync) {
			return true
		}
	}
	return false
}

// begun returns the grants that a plan begins with: those of its inventory. Where that was lost, no
// approval that stands now, nor one in the message of this commit, counts until it is given anew. What a
// person types for a later pass is new.
func (p Plan) begun(have []Grant) []Grant {
	if !p.rebuilt || slices.ContainsFunc(have, func(g Grant) bool { return g.Digest == anyDigest }) {
		return have
	}
	lost := Grant{Digest: anyDigest, Commit: p.Want.Revision, Given: true, On: []ApprovalPlace{OnRun, OnSync}}
	if _, read := p.given[OnCommand]; read {
		lost.On = approvalPlaces
	}
	return append([]Grant{lost}, have...)
}

// grants are those to remember: of what was given before, and of this plan.
func (p Plan) grants(have []Grant) []Grant {
	var next []Grant
	for _, g := range p.begun(have) {
		if g.Digest == anyDigest {
			next = append(next, p.given.unknown(g)...)
		}
		g = p.given.standing(g)
		if g.Commit != p.Want.Revision {
			g.Left = nil
		}
		next = append(next, g)
	}
	if p.grant != nil && !slices.ContainsFunc(next, func(g Grant) bool {
		return g.Digest == p.grant.Digest && g.Commit == p.grant.Commit && g.Given == p.grant.Given && slices.Equal(g.On, p.grant.On)
	}) {
		next = append(next, *p.grant)
	}
	over := len(next) - mostGrants
	return slices.DeleteFunc(next, func(g Grant) bool {
		if over <= 0 || p.stands(g) {
			return false
		}
		over--
		return true
	})
}

// unknown returns grants of the approvals that stand in places that are read for the first time since
// the inventory was lost.
func (a Approvals) unknown(lost Grant) []Grant {
	var all []Grant
	for _, digest := range a.digests() {
		on := slices.DeleteFunc(a.of(digest), func(place ApprovalPlace) bool { return !slices.Contains(lost.places(), place) })
		if len(on) > 0 {
			all = append(all, Grant{Digest: digest, Given: true, On: on})
		}
	}
	return all
}

// stands reports whether the approval of a grant stands, where a person gave it or in the message of
// the commit, or whether steps of it are still to be carried out.
func (p Plan) stands(g Grant) bool { return g.Given || g.Commit == p.Want.Revision }

// forgets reports whether an approval that counted stands in other places than is remembered. Where it
// stands nowhere any more, it may be given again.
func (p Plan) forgets(have []Grant) bool {
	return slices.ContainsFunc(have, func(g Grant) bool { return g.Given && !slices.Equal(g.On, p.given.standing(g).On) })
}

// fulfilled are grants without the steps that were carried out.
func (p Plan) fulfilled(grants []Grant, done []Outcome) []Grant {
	carried := map[manifest.ID]bool{}
	for _, o := range done {
		carried[o.ID] = o.Err == nil
	}
	over := map[string]bool{}
	for _, s := range p.Steps {
		if s.Approved && carried[s.ID] && !(s.TakesBack && s.ID.IsMRD()) {
			s.Would = s.Action
			over[s.approvalKey()] = true
		}
	}
	for i, g := range grants {
		grants[i].Left = slices.DeleteFunc(slices.Clone(g.Left), func(key string) bool { return over[key] })
	}
	return grants
}
