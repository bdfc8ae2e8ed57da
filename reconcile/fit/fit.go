// Package fit checks whether custom resources fit a definition that is going to change: whether they lose fields or are
// refused. It looks at one object at a time and keeps a count and an example of each.
package fit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MostChecked is how many objects of a kind are looked at before an update of their definition.
const MostChecked = 5000

// A Tally looks at the objects of a kind one by one, and keeps of them only what the update of their definition would do:
// how many lose or are refused what, and an example of each.
type Tally struct {
	judge  *schema.Judge
	seen   int64
	bad    int64
	places map[misfit]misfits
}

// A misfit is one reason why objects are in the way.
type misfit struct {
	code  plan.Code // LosesField or IsRefused
	place string    // the field, or what is wrong with it
}

// compare orders misfits as their codes and places.
func (m misfit) compare(other misfit) int {
	return cmp.Or(cmp.Compare(m.code, other.code), strings.Compare(m.place, other.place))
}

// Misfits are the objects that are in the way for one reason.
type misfits struct {
	count   int64
	example string
}

// mostReasons is how many reasons an answer names.
const mostReasons = 3

// mostPlaces is how many reasons are told apart.
const mostPlaces = 100

// New returns the tally for a question Fits, for objects that are read in a version of a live CRD.
func New(q plan.Question, live *unstructured.Unstructured, version string) (*Tally, error) {
	after, err := q.After.Content()
	if err == nil && crossplane.IsXRD(manifest.IDOf(after)) {
		after, err = schema.Composite(live, after)
	}
	if err != nil {
		return nil, err
	}
	judge, err := schema.NewJudge(live, after, version)
	return &Tally{judge: judge, places: map[misfit]misfits{}}, err
}

// Add looks at an object, which it may change.
func (t *Tally) Add(ctx context.Context, o *unstructured.Unstructured) {
	id := manifest.IDOf(o)
	loses, refused := t.judge.Of(ctx, o)
	t.seen++
	if len(loses)+len(refused) == 0 {
		return
	}
	t.bad++
	for i, place := range slices.Concat(loses, refused) {
		what := misfit{plan.LosesField, place}
		if i >= len(loses) {
			what.code = plan.IsRefused
		}
		m, known := t.places[what]
		if !known && len(t.places) == mostPlaces {
			continue
		}
		if !known {
			m.example = id.Brief()
		}
		m.count++
		t.places[what] = m
	}
}

// Full reports whether it has looked at as many objects as it may.
func (t *Tally) Full() bool { return t.seen >= MostChecked }

// Answer returns how many objects are in the way, and why. more reports whether there are objects that it did not
// look at.
func (t *Tally) Answer(more bool) plan.Answer {
	a := plan.Answer{Count: t.bad}
	whats := slices.SortedFunc(maps.Keys(t.places), func(x, y misfit) int {
		if t.places[x].count != t.places[y].count {
			return int(t.places[y].count - t.places[x].count)
		}
		return x.compare(y)
	})
	for i, what := range whats {
		if i == mostReasons {
			a.Misfits = append(a.Misfits, plan.MoreMisfits.With(len(whats)-i))
			break
		}
		a.Misfits = append(a.Misfits, what.code.With(t.places[what].count, t.seen, what.place, t.places[what].example))
	}
	if more && t.bad == 0 {
		a.Unknown = plan.NotAllLookedAt.With(t.seen)
	}
	return a
}
