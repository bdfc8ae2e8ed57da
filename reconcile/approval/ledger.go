package approval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Ledger holds the approvals that people gave and the record of those that were used. It is the one place that decides which claims
// may pass. Using a part of an approval spends the whole.
type Ledger struct {
	Given  Given             // the approvals in the places that were read
	Grants []inventory.Grant // the approvals that earlier passes used
	Now    metav1.Time
	Commit string
	First  bool // the first pass of the sync in this cluster

	let map[string]map[string]int // the amounts that each approval has let pass in this pass, by the keys of claims
}

// A Use is the use of all approvals that list one digest.
type Use struct {
	Digest string
	Given  Given
	Asks   []Ask // the claims that pass; each amount is the limit that was approved
}

// A Shortage is an approval of claims whose amount is now larger than what it covers.
type Shortage struct {
	Digest string
	Covers int // the amount that it covers
	Asks   []Ask
}

// Cover returns the uses of approvals that let claims pass, and the claims that nobody has approved. An approval lists the digest of
// all claims together; one in a place of Listing may also list single claims, or all claims about one change.
func (l *Ledger) Cover(asks []Ask) (uses []Use, rest []Ask, short []Shortage) {
	use, short := l.use(l.counting(asks), asks, Whole(asks))
	if use != nil {
		return []Use{*use}, nil, nil
	}
	for _, a := range asks {
		use, lacks := l.use(l.listed(a), []Ask{a}, a.Digest(), Whole(about(asks, a)))
		if short = append(short, lacks...); use == nil {
			rest = append(rest, a)
			continue
		}
		uses = append(uses, *use)
	}
	if len(uses) == 0 || len(rest) == 0 {
		return uses, rest, short
	}
	if use, _ = l.use(l.counting(rest), rest, Whole(rest)); use == nil {
		return uses, rest, short
	}
	return append(uses, *use), nil, nil
}

// about returns the claims about the same change as one of them.
func about(asks []Ask, one Ask) []Ask {
	return slices.DeleteFunc(slices.Clone(asks), func(a Ask) bool { return a.change() != one.change() })
}

// use returns the use of the unused approvals that list one of some digests, if one of them covers the amounts of the claims.
func (l *Ledger) use(given Given, asks []Ask, digests ...string) (*Use, []Shortage) {
	var short []Shortage
	for _, digest := range slices.Compact(digests) {
		unused := given.Unused(digest, l.Grants)
		for _, place := range unused.places() {
			for _, one := range unused[place] {
				if !l.allows(one, asks) {
					short = append(short, Shortage{digest, one.covers(asks), asks})
					continue
				}
				use := &Use{Digest: digest, Given: unused}
				for _, a := range asks {
					a.Amount = one.limit(a)
					use.Asks = append(use.Asks, a)
				}
				return use, nil
			}
		}
	}
	return nil, short
}

// allows reports whether an approval covers the amounts of claims, and records that it does.
func (l *Ledger) allows(one Approval, asks []Ask) bool {
	passed := maps.Clone(l.let[one.name()])
	if passed == nil {
		passed = map[string]int{}
	}
	for _, a := range asks {
		if limit, shown := one.shown(a); !shown {
			passed[a.Key()] = a.Amount.Count()
		} else if !a.Amount.Within(limit) {
			return false
		}
	}
	sum := 0
	for _, count := range passed {
		sum += count
	}
	if sum > one.UpTo {
		return false
	}
	if l.let == nil {
		l.let = map[string]map[string]int{}
	}
	l.let[one.name()] = passed
	return true
}

// counting returns the approvals that count for claims. In the first pass of a sync in a cluster, approvals that have expired count,
// too, so that a cluster that is made anew comes up without a person. They never delete anything.
func (l *Ledger) counting(asks []Ask) Given {
	deletes := slices.ContainsFunc(asks, func(a Ask) bool { return a.Action != create && a.Action != update })
	if l.First && !deletes {
		return l.Given
	}
	return l.Given.At(l.Now)
}

// The actions that delete nothing.
const (
	create = "create"
	update = "update"
)

// listed returns the approvals in places of Listing that count for a claim.
func (l *Ledger) listed(a Ask) Given { return l.counting([]Ask{a}).Listed() }

// Continues returns how far a used approval lets a claim pass that is not carried out yet. An approval that a person withdrew no longer
// counts. keys identify the claim and the claims that lead to it.
func (l *Ledger) Continues(a Ask, keys ...string) (limit Amount, does bool) {
	for _, g := range l.Grants {
		if l.Given.Withdrawn(g) {
			continue
		}
		for _, left := range g.Left {
			key, limit := leftOf(left)
			same := slices.Contains(append(keys, a.Key()), key) && g.Commit == l.Commit
			later := key == a.Key() && l.listed(a).Holds(g)
			if (same || later) && a.Amount.Within(limit) {
				return limit, true
			}
		}
	}
	return Amount{}, false
}

// Left returns the text for Left in a grant: the key of a claim that is not carried out yet, and how far it may grow.
func Left(key string, limit Amount) string {
	if limit == (Amount{}) {
		return key
	}
	return key + "=" + limit.String()
}

// leftOf reads the text of Left. An amount that cannot be read is nothing.
func leftOf(left string) (key string, limit Amount) {
	key, text, _ := strings.Cut(left, "=")
	limit, _ = Parse(text)
	return key, limit
}

// ChangeOf returns the change in a text of Left, or in a key: the same for all claims about it.
func ChangeOf(left string) string {
	key, _ := leftOf(left)
	_, change, _ := strings.Cut(key, ":")
	return change
}

// ObjectOf returns the parts of a key, or of a text of Left, that stand for the object and for its wanted content.
func ObjectOf(left string) (object, wants string) {
	object, rest, _ := strings.Cut(ChangeOf(left), ".")
	wants, _, _ = strings.Cut(rest, ".")
	return object, wants
}

// name distinguishes an approval from the others of a pass.
func (a Approval) name() string { return fmt.Sprintf("%s %q %s", a.ID, a.Digests, a.By) }

// shown returns the amount of a claim that the approver saw, unless the approver wrote a number.
func (a Approval) shown(of Ask) (Amount, bool) {
	limit, has := a.Shown[of.Digest()]
	return limit, has && a.UpTo == 0
}

// limit returns how far a claim that the approval covers may grow until it is carried out. A number is for all claims together, so none
// of them may grow.
func (a Approval) limit(of Ask) Amount {
	if limit, shown := a.shown(of); shown {
		return limit
	}
	return of.Amount
}

// covers returns the amount of claims that the approval covers.
func (a Approval) covers(asks []Ask) int {
	sum := a.UpTo
	for _, of := range asks {
		if limit, shown := a.shown(of); shown {
			sum += limit.Count()
		}
	}
	return sum
}

// Line returns what a person writes to approve a digest whose claims have an amount.
func Line(digest string, upTo int) string {
	if upTo == 0 {
		return digest
	}
	return fmt.Sprintf("%s up to %d", digest, upTo)
}
