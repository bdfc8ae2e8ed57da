package inventory

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Undone holds the creates and updates that a pass did not do, and since when.
type Undone map[manifest.ID]metav1.Time

// mostUndone is the maximum number of objects of an Undone in an inventory. The oldest ones stay.
const mostUndone = 100

// since is the stored form of an element of an Undone.
type since struct {
	Object manifest.ID `json:"object"`
	Since  metav1.Time `json:"since"`
}

// MarshalJSON writes the oldest elements, sorted.
func (u Undone) MarshalJSON() ([]byte, error) {
	oldest := slices.SortedFunc(maps.Keys(u), func(a, b manifest.ID) int {
		return cmp.Or(u[a].Compare(u[b].Time), a.Compare(b))
	})
	all := []since{}
	for _, id := range oldest[:min(len(oldest), mostUndone)] {
		all = append(all, since{id, u[id]})
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads the elements.
func (u *Undone) UnmarshalJSON(data []byte) error {
	var all []since
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*u = Undone{}
	for _, one := range all {
		(*u)[one.Object] = one.Since
	}
	return nil
}
