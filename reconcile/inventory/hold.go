package inventory

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Hold groups the steps that the last pass held for one reason since one commit. Keys has one key for each step,
// which stands for the guard, the action, the object and the wanted digest. A step with another key is another hold.
type Hold struct {
	Guard   string      `json:"guard"`
	Action  string      `json:"action"`
	Code    string      `json:"code,omitempty"` // the code of the reason
	Reason  string      `json:"reason,omitempty"`
	Count   int         `json:"count"`
	Objects []string    `json:"objects"`          // the first objects
	Digest  string      `json:"digest,omitempty"` // approves everything that is held and can be approved; "" if this cannot be approved
	UpTo    int         `json:"upTo,omitempty"`   // the amount that an approval with the digest has to cover
	Since   metav1.Time `json:"since"`
	Commit  string      `json:"commit,omitempty"` // the commit of the first pass that held it
	Keys    []string    `json:"keys,omitempty"`
}

// Holds are the holds of one pass.
type Holds []Hold

const (
	mostHolds   = 100  // holds in an inventory with their reasons, and as many groups of others
	mostHeld    = 5000 // steps in an inventory; any other step counts as new in the next pass
	mostObjects = 3    // objects that a Hold names
)

// Of returns the hold that contains a key.
func (h Holds) Of(key string) (Hold, bool) {
	i := slices.IndexFunc(h, func(one Hold) bool { return slices.Contains(one.Keys, key) })
	if i < 0 {
		return Hold{}, false
	}
	return h[i], true
}

// With returns the holds with one more step. The step joins the hold with the same reason and commit, if there is one.
func (h Holds) With(step Hold, key, object string) Holds {
	step.Count, step.Keys, step.Objects = 1, []string{key}, []string{object}
	return h.join(step)
}

// join returns the holds with the steps of one more, which join the hold with the same reason and commit, if there is one.
func (h Holds) join(more Hold) Holds {
	i := slices.IndexFunc(h, func(one Hold) bool {
		return one.Guard == more.Guard && one.Action == more.Action && one.Reason == more.Reason && one.Digest == more.Digest &&
			one.Commit == more.Commit && one.Since.Equal(&more.Since)
	})
	if i < 0 {
		return append(h, more)
	}
	h[i].Count += more.Count
	h[i].Keys = append(h[i].Keys, more.Keys...)
	h[i].Objects = append(h[i].Objects, more.Objects[:min(len(more.Objects), mostObjects-len(h[i].Objects))]...)
	return h
}

// otherReasons stands for the reasons of holds that an inventory has no space for.
const otherReasons = "other reasons"

// Bounded returns the holds that fit into an inventory. After the first ones, it keeps since when and since which commit each is held.
func (h Holds) Bounded() Holds {
	first := min(len(h), mostHolds)
	var others Holds
	for _, one := range h[first:] {
		one.Keys, one.Objects = slices.Clone(one.Keys), slices.Clone(one.Objects)
		one.Reason, one.Code, one.Digest, one.UpTo = otherReasons, "", "", 0
		others = others.join(one)
	}
	bounded, left := Holds{}, mostHeld
	for _, one := range slices.Concat(h[:first], others[:min(len(others), mostHolds)]) {
		one.Keys = one.Keys[:min(len(one.Keys), left)]
		left -= len(one.Keys)
		bounded = append(bounded, one)
	}
	return bounded
}

// brief returns the first holds, without their keys, for a history.
func (h Holds) brief() Holds {
	const most = 3
	var first Holds
	for _, one := range h[:min(len(h), most)] {
		one.Keys = nil
		first = append(first, one)
	}
	return first
}
