package plan

import (
	"context"
	"fmt"
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

// A Whole is a definition with its schemas. Two that are equal have the same content.
type Whole interface {
	Content() (*unstructured.Unstructured, error)
}

// AtHand returns the Whole of a definition that is at hand.
func AtHand(u *unstructured.Unstructured) Whole { return (*atHand)(u) }

type atHand unstructured.Unstructured

func (a *atHand) Content() (*unstructured.Unstructured, error) {
	return (*unstructured.Unstructured)(a), nil
}

// Later returns the Whole of a definition that is decoded when it is asked for, and is equal to no other one.
func Later(content func() (*unstructured.Unstructured, error)) Whole { return &later{content} }

type later struct {
	content func() (*unstructured.Unstructured, error)
}

func (l *later) Content() (*unstructured.Unstructured, error) { return l.content() }

// A Fitting looks at the objects of a kind one by one, and keeps of them only what the update of their
// definition would do: how many lose or are refused what, and an example of each.
type Fitting struct {
	judge  *schema.Judge
	seen   int64
	bad    int64
	places map[string]misfits
}

// Misfits are objects that are in the way for one reason.
type misfits struct {
	count   int64
	example string
}

// mostReasons is how many reasons an answer names.
const mostReasons = 3

// mostPlaces is how many reasons are told apart.
const mostPlaces = 100

// NewFitting returns the fitting of a question Fits, for objects that are read in a version of a live CRD.
func NewFitting(q Question, live *unstructured.Unstructured, version string) (*Fitting, error) {
	after, err := q.After.Content()
	if err == nil && crossplane.IsXRD(manifest.IDOf(after)) {
		after, err = schema.Composite(live, after)
	}
	if err != nil {
		return nil, err
	}
	judge, err := schema.NewJudge(live, after, version)
	return &Fitting{judge: judge, places: map[string]misfits{}}, err
}

// Look looks at an object, which it may change.
func (f *Fitting) Look(ctx context.Context, o *unstructured.Unstructured) {
	id := manifest.IDOf(o)
	loses, refused := f.judge.Of(ctx, o)
	f.seen++
	if len(loses)+len(refused) == 0 {
		return
	}
	f.bad++
	for i, place := range slices.Concat(loses, refused) {
		what := "set " + place + ", which is lost"
		if i >= len(loses) {
			what = "are refused (" + place + ")"
		}
		m, known := f.places[what]
		if !known && len(f.places) == mostPlaces {
			continue
		}
		if !known {
			m.example = id.Kind + " " + strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
		}
		m.count++
		f.places[what] = m
	}
}

// Full reports whether it has looked at as many objects as it may.
func (f *Fitting) Full() bool { return f.seen >= MostJudged }

// Answer returns how many objects are in the way. The example says of those why. more reports whether there
// are objects that it did not look at.
func (f *Fitting) Answer(more bool) Answer {
	a := Answer{Count: f.bad}
	whats := slices.SortedFunc(maps.Keys(f.places), func(x, y string) int {
		if f.places[x].count != f.places[y].count {
			return int(f.places[y].count - f.places[x].count)
		}
		return strings.Compare(x, y)
	})
	var said []string
	for i, what := range whats {
		if i == mostReasons {
			said = append(said, fmt.Sprintf("and %d more reasons", len(whats)-i))
			break
		}
		said = append(said, fmt.Sprintf("%d of %d %s, for example %s", f.places[what].count, f.seen, what, f.places[what].example))
	}
	a.Example = strings.Join(said, "; ")
	if more && f.bad == 0 {
		a.Unknown = fmt.Sprintf("none of the first %d loses or is refused anything, and there are more", f.seen)
	}
	return a
}

// AfterWhole returns a definition as it will be, with its schemas; nil if they cannot be had.
func (s Step) AfterWhole() Whole {
	if s.whole == nil && s.After != nil && !s.lean {
		return AtHand(s.After)
	}
	return s.whole
}
