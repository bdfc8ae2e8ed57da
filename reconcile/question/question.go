// Package question is the protocol between a decision, which sends no requests, and the places that can answer it. A decision reads
// answers with Get. A question without an answer is recorded, some place answers it, and the decision is made again.
package question

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"headgate.dev/headgate/render/manifest"
)

// An Any is a question of any type. It is a comparable value. Two equal questions have the same answer.
type Any interface {
	About() manifest.ID // the object that the question is about; zero if it is about none
	Nothing() any       // the zero answer: nothing was found
}

// An Of is a question whose answer is an A. Its type embeds By[A].
type Of[A any] interface {
	Any
	answered(a A)
}

// By makes the type that embeds it a question whose answer is an A.
type By[A any] struct{}

// Nothing returns the zero answer.
func (By[A]) Nothing() any { return *new(A) }

func (By[A]) answered(A) {}

// Answers holds answers by question: to a question Of[A] an A, or an Unknown.
type Answers map[Any]any

// An Unknown is the answer to a question that could not be answered.
type Unknown struct{ Why error }

// And returns the answers together with newer ones.
func (a Answers) And(newer Answers) Answers {
	all := make(Answers, len(a)+len(newer))
	maps.Copy(all, a)
	maps.Copy(all, newer)
	return all
}

// Known is what a decision knows: the answers, and where it records the questions without one. If Asked is nil, nobody is asked.
type Known struct {
	Answers Answers
	Asked   *[]Any
}

// A State reports whether the answer to a question is known. The zero value means that it is.
type State struct {
	Open   bool  // the question has not been answered yet
	Unseen bool  // it has no answer, and nobody is asked: no cluster shows what a commit does not
	Err    error // why it could not be answered
}

// Known reports whether the question was answered.
func (s State) Known() bool { return s == State{} }

// And returns the state of two answers that are needed together.
func (s State) And(other State) State {
	s.Open, s.Unseen = s.Open || other.Open, s.Unseen || other.Unseen
	if other.Err != nil {
		s.Err = other.Err
	}
	return s
}

// Get returns the answer to a question. If there is none yet, reading it asks the question.
func Get[A any](known Known, q Of[A]) (A, State) {
	switch a := known.Answers[q].(type) {
	case Unknown:
		return *new(A), State{Err: a.Why}
	case A:
		return a, State{}
	}
	if known.Asked == nil {
		return *new(A), State{Unseen: true}
	}
	*known.Asked = append(*known.Asked, q)
	return *new(A), State{Open: true}
}

// Unique returns questions without duplicates, in their order.
func Unique(asked []Any) []Any {
	var open []Any
	seen := make(map[Any]bool, len(asked))
	for _, q := range asked {
		if !seen[q] {
			seen[q] = true
			open = append(open, q)
		}
	}
	return open
}

// Text returns questions as text, sorted: "dependents of CRD buckets.example.org".
func Text(asked []Any) string {
	all := make([]string, len(asked))
	for i, q := range asked {
		all[i] = name(q)
		if id := q.About(); id != (manifest.ID{}) {
			all[i] = fmt.Sprintf("%s of %s", all[i], id.Brief())
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// name returns the name of a question's type in words: "applied before".
func name(q Any) string {
	var words strings.Builder
	for i, letter := range reflect.TypeOf(q).Name() {
		if unicode.IsUpper(letter) && i > 0 {
			words.WriteByte(' ')
		}
		words.WriteRune(unicode.ToLower(letter))
	}
	return words.String()
}
