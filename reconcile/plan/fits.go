package plan

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MostJudged is how many objects of a kind are looked at before an update of their definition.
const MostJudged = 5000

// A FullDefinition is a definition with its schemas. Two that are equal have the same content.
type FullDefinition interface {
	Content() (*unstructured.Unstructured, error)
}

// Decoded returns the FullDefinition of content that is decoded already.
func Decoded(u *unstructured.Unstructured) FullDefinition { return (*loaded)(u) }

type loaded unstructured.Unstructured

func (a *loaded) Content() (*unstructured.Unstructured, error) {
	return (*unstructured.Unstructured)(a), nil
}

// Lazy returns a FullDefinition that is decoded when its content is read, and that equals no other one.
func Lazy(content func() (*unstructured.Unstructured, error)) FullDefinition { return &lazy{content} }

type lazy struct {
	content func() (*unstructured.Unstructured, error)
}

func (l *lazy) Content() (*unstructured.Unstructured, error) { return l.content() }

// The codes of custom resources that do not fit a new schema.
const (
	LosesField  Code = "LosesField"  // how many, of how many, set a field that is lost, the field, and an example
	IsRefused   Code = "IsRefused"   // how many, of how many, are refused, why, and an example
	MoreMisfits Code = "MoreMisfits" // how many more reasons there are

	NotAllLookedAt Code = "NotAllLookedAt" // how many objects were looked at, which fit; there are more
)

// A FitCheck checks the objects of a kind one by one, and keeps of them only what the update of their
// definition would do: how many lose or are refused what, and an example of each.
type FitCheck struct {
	judge  *schema.Judge
	seen   int64
	bad    int64
	places map[misfit]misfits
}

// A misfit is one reason why objects are in the way.
type misfit struct {
	code  Code   // LosesField or IsRefused
	place string // the field, or what is wrong with it
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

// NewFitCheck returns the check of a question Fits, for objects that are read in a version of a live CRD.
func NewFitCheck(q Question, live *unstructured.Unstructured, version string) (*FitCheck, error) {
	after, err := q.After.Content()
	if err == nil && crossplane.IsXRD(manifest.IDOf(after)) {
		after, err = schema.Composite(live, after)
	}
	if err != nil {
		return nil, err
	}
	judge, err := schema.NewJudge(live, after, version)
	return &FitCheck{judge: judge, places: map[misfit]misfits{}}, err
}

// Check checks an object, which it may change.
func (f *FitCheck) Check(ctx context.Context, o *unstructured.Unstructured) {
	id := manifest.IDOf(o)
	loses, refused := f.judge.Of(ctx, o)
	f.seen++
	if len(loses)+len(refused) == 0 {
		return
	}
	f.bad++
	for i, place := range slices.Concat(loses, refused) {
		what := misfit{LosesField, place}
		if i >= len(loses) {
			what.code = IsRefused
		}
		m, known := f.places[what]
		if !known && len(f.places) == mostPlaces {
			continue
		}
		if !known {
			m.example = id.Brief()
		}
		m.count++
		f.places[what] = m
	}
}

// Full reports whether it has looked at as many objects as it may.
func (f *FitCheck) Full() bool { return f.seen >= MostJudged }

// Answer returns how many objects are in the way, and why. more reports whether there are objects that it did not
// look at.
func (f *FitCheck) Answer(more bool) Answer {
	a := Answer{Count: f.bad}
	whats := slices.SortedFunc(maps.Keys(f.places), func(x, y misfit) int {
		if f.places[x].count != f.places[y].count {
			return int(f.places[y].count - f.places[x].count)
		}
		return x.compare(y)
	})
	for i, what := range whats {
		if i == mostReasons {
			a.Misfits = append(a.Misfits, MoreMisfits.With(len(whats)-i))
			break
		}
		a.Misfits = append(a.Misfits, what.code.With(f.places[what].count, f.seen, what.place, f.places[what].example))
	}
	if more && f.bad == 0 {
		a.Unknown = NotAllLookedAt.With(f.seen)
	}
	return a
}

// AfterWhole returns a definition as it will be, with its schemas; nil if they cannot be had.
func (s Step) AfterWhole() FullDefinition {
	if s.whole == nil && s.After != nil && !s.lean {
		return Decoded(s.After)
	}
	return s.whole
}
