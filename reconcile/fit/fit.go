// Package fit checks whether custom resources fit a definition that is about to change: whether they would lose
// fields or be refused. It checks one object at a time, and keeps only counts and examples.
package fit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MostChecked is the maximum number of objects of a kind to check before an update of their definition.
const MostChecked = 5000

// A Tally checks the objects of a kind one by one. It keeps only the effects of the update: how many objects lose or
// are refused which field, and an example of each.
type Tally struct {
	judge  *schema.Judge
	seen   int64
	bad    int64
	places map[misfit]misfits
}

// A misfit is one reason why objects do not fit.
type misfit struct {
	code  reason.Code // LosesField or IsRefused
	place string      // the field, or what is wrong with it
}

// compare orders misfits by code and place.
func (m misfit) compare(other misfit) int {
	return cmp.Or(cmp.Compare(m.code, other.code), strings.Compare(m.place, other.place))
}

// misfits counts the objects that do not fit for one reason.
type misfits struct {
	count   int64
	example string
}

// mostReasons is the maximum number of reasons in an answer.
const mostReasons = 3

// mostPlaces is the maximum number of reasons that a Tally counts.
const mostPlaces = 100

// New returns the Tally for the new version of a definition. The objects must be in a version of the live CRD.
func New(becomes plan.FullDefinition, live *unstructured.Unstructured, version string) (*Tally, error) {
	after, err := becomes.Content()
	if err == nil && crossplane.IsXRD(manifest.IDOf(after)) {
		after, err = compositeOf(live, after)
	}
	if err != nil {
		return nil, err
	}
	judge, err := schema.NewJudge(live, after, version)
	return &Tally{judge: judge, places: map[misfit]misfits{}}, err
}

// Add checks an object, and may change it.
func (t *Tally) Add(ctx context.Context, o *unstructured.Unstructured) {
	id := manifest.IDOf(o)
	loses, refused := t.judge.Of(ctx, o)
	t.seen++
	if len(loses)+len(refused) == 0 {
		return
	}
	t.bad++
	for i, place := range slices.Concat(loses, refused) {
		what := misfit{reason.LosesField, place}
		if i >= len(loses) {
			what.code = reason.IsRefused
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

// Full reports whether the Tally has reached its maximum number of objects.
func (t *Tally) Full() bool { return t.seen >= MostChecked }

// An UncheckedError is the error of a Tally that did not check all objects, although those that it checked fit.
type UncheckedError struct{ reason.CodedError }

// Unwrap returns the reason.
func (e UncheckedError) Unwrap() error { return e.CodedError }

// Answer returns how many objects do not fit, and why. more reports whether there are unchecked objects.
func (t *Tally) Answer(more bool) (question.Misfits, error) {
	a := question.Misfits{Count: t.bad}
	whats := slices.SortedFunc(maps.Keys(t.places), func(x, y misfit) int {
		if t.places[x].count != t.places[y].count {
			return int(t.places[y].count - t.places[x].count)
		}
		return x.compare(y)
	})
	for i, what := range whats {
		if i == mostReasons {
			a.Reasons = append(a.Reasons, reason.MoreMisfits.With(len(whats)-i))
			break
		}
		a.Reasons = append(a.Reasons, what.code.With(t.places[what].count, t.seen, what.place, t.places[what].example))
	}
	if more && t.bad == 0 {
		return a, UncheckedError{reason.CodedError{Reason: reason.NotAllLookedAt.With(t.seen)}}
	}
	return a, nil
}
