package inventory

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Hold is what the last pass held back for one reason, since one commit. Keys hold one key for each step: it stands for the
// guard, the action, the object and the digest that is wanted, so another of these is another hold.
type Hold struct {
	Guard   string      `json:"guard"`
	Action  string      `json:"action"`
	Code    string      `json:"code,omitempty"` // of the reason
	Reason  string      `json:"reason,omitempty"`
	Count   int         `json:"count"`
	Objects []string    `json:"objects"`          // the first of them
	Digest  string      `json:"digest,omitempty"` // what approves it, and everything else that is held and can be approved; "" cannot be approved
	Since   metav1.Time `json:"since"`
	Commit  string      `json:"commit,omitempty"` // of the pass that held it first
	Keys    []string    `json:"keys,omitempty"`
}

// Holds are the holds of one pass.
type Holds []Hold

const (
	mostHolds   = 100  // reasons and commits that an inventory remembers; what is more counts as new in the next pass
	mostHeld    = 5000 // steps, likewise
	mostObjects = 3    // that a Hold names
)

// Of returns the hold that a key belongs to.
func (h Holds) Of(key string) (Hold, bool) {
	i := slices.IndexFunc(h, func(one Hold) bool { return slices.Contains(one.Keys, key) })
	if i < 0 {
		return Hold{}, false
	}
	return h[i], true
}

// With returns the holds with one more step, together with those that are held for the same reason since the same commit.
func (h Holds) With(step Hold, key, object string) Holds {
	i := slices.IndexFunc(h, func(one Hold) bool {
		return one.Guard == step.Guard && one.Action == step.Action && one.Reason == step.Reason && one.Digest == step.Digest &&
			one.Commit == step.Commit && one.Since.Equal(&step.Since)
	})
	if i < 0 {
		h, i = append(h, step), len(h)
	}
	h[i].Count++
	h[i].Keys = append(h[i].Keys, key)
	if len(h[i].Objects) < mostObjects {
		h[i].Objects = append(h[i].Objects, object)
	}
	return h
}

// Bounded returns as many of the holds as an inventory has room for.
func (h Holds) Bounded() Holds {
	bounded, left := Holds{}, mostHeld
	for _, one := range h[:min(len(h), mostHolds)] {
		one.Keys = one.Keys[:min(len(one.Keys), left)]
		left -= len(one.Keys)
		bounded = append(bounded, one)
	}
	return bounded
}

// told returns the first holds without their keys, for a history.
func (h Holds) told() Holds {
	const most = 3
	var told Holds
	for _, one := range h[:min(len(h), most)] {
		one.Keys = nil
		told = append(told, one)
	}
	return told
}
