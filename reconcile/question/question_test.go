package question

import (
	"errors"
	"testing"

	"headgate.dev/headgate/render/manifest"
)

func TestGet(t *testing.T) {
	errBoom := errors.New("boom")
	q := Dependents{Of: manifest.ID{Kind: "Namespace", Name: "a"}}
	for name, tc := range map[string]struct {
		reason string
		answer any
		count  int64
		is     State
		asks   int
	}{
		"Open":    {"Reading asks.", nil, 0, State{Open: true}, 1},
		"Known":   {"What is known is not asked again.", Counted{Count: 2}, 2, State{}, 0},
		"Unknown": {"What could not be answered is not asked again.", Unknown{errBoom}, 0, State{Err: errBoom}, 0},
		"Other":   {"A value of another type is no answer.", []string{"v1"}, 0, State{Open: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			answers := Answers{q: tc.answer}
			if tc.answer == nil {
				answers = nil
			}
			var asked []Any
			a, is := Get(Known{answers, &asked}, q)
			if a.Count != tc.count || is != tc.is || len(asked) != tc.asks {
				t.Errorf("%s\nGet(...) = %v, %v, and asks %v", tc.reason, a, is, asked)
			}
			if _, peeks := Get(Known{Answers: answers}, q); peeks != (State{Unseen: tc.is.Open, Err: tc.is.Err}) {
				t.Errorf("Without a list, nobody is asked: %v", peeks)
			}
		})
	}
}

func TestText(t *testing.T) {
	id := manifest.ID{Kind: "Namespace", Name: "a"}
	if got, want := Text([]Any{Inside{Of: id}, AppliedBefore{Of: id}, Inside{Of: id}}), "applied before of Namespace a, inside of Namespace a"; got != want {
		t.Errorf("Text(...) = %q, want %q", got, want)
	}
}
