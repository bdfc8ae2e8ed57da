package inventory

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecalled(t *testing.T) {
	well, held := Past{Activation: "success", Drift: "success"}, Past{Activation: "failure", Drift: "success", ExitCode: 3, Held: 1}
	change := well
	change.Created = 1
	cases := map[string]struct {
		reason string
		before []Past
		pass   Past
		news   bool
	}{
		"First":     {"The first pass is recorded, whatever its result.", nil, well, true},
		"Idle":      {"A pass without changes is not recorded.", []Past{change}, well, false},
		"Changed":   {"A pass with changes is recorded.", []Past{change}, change, true},
		"Worse":     {"A pass with a new verdict is recorded, even if it wrote nothing.", []Past{well}, held, true},
		"Still":     {"A hold that every pass repeats is recorded once.", []Past{held}, held, false},
		"Recovered": {"", []Past{held}, well, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after, news := Recalled(tc.before, tc.pass)
			if news != tc.news || len(after) != len(tc.before)+map[bool]int{true: 1}[news] {
				t.Errorf("%s\nnews %t, %d passes", tc.reason, news, len(after))
			}
		})
	}
	var history []Past
	for i := range 12 {
		before := append([]Past(nil), history...)
		p := change
		p.Revision = fmt.Sprint(i)
		next, _ := Recalled(history, p)
		if diff := cmp.Diff(before, history); diff != "" {
			t.Fatalf("The argument stays unchanged:\n%s", diff)
		}
		history = next
	}
	if len(history) != 10 || history[0].Revision != "2" || history[9].Revision != "11" {
		t.Errorf("the last ten, the newest last: %d, from %s to %s", len(history), history[0].Revision, history[len(history)-1].Revision)
	}
}

func TestTwoRevisionsInTurn(t *testing.T) {
	did := func(revision string) Past { return Past{Revision: revision, Updated: 1} }
	idle := func(revision string) Past { return Past{Revision: revision} }
	for name, tc := range map[string]struct {
		reason  string
		history []Past
		of      string
		want    string
	}{
		"InTurn":    {"", []Past{did("a"), did("b"), did("a"), did("b")}, "a", "b"},
		"Other":     {"Both processes stop.", []Past{did("a"), did("b"), did("a"), did("b")}, "b", "a"},
		"Third":     {"A new commit ends it.", []Past{did("a"), did("b"), did("a"), did("b")}, "c", ""},
		"Passed":    {"Another commit was applied since.", []Past{did("a"), did("b"), did("a"), did("b"), did("c")}, "a", ""},
		"Revert":    {"A person went back once, and forth again.", []Past{did("x"), did("a"), did("b"), did("a")}, "b", ""},
		"Several":   {"A process may need two passes for its commit.", []Past{did("a"), did("a"), did("b"), did("a"), did("b"), did("b")}, "b", "a"},
		"Refused":   {"A pass without a change is not part of it.", []Past{did("a"), did("b"), did("a"), idle("b"), did("b"), idle("a"), idle("c")}, "a", "b"},
		"Idle":      {"Passes that change nothing harm nobody.", []Past{did("a"), idle("b"), did("a"), idle("b")}, "a", ""},
		"Three":     {"", []Past{did("a"), did("b"), did("c"), did("b")}, "b", ""},
		"Release":   {"A release is not the pass of a commit.", []Past{did("a"), did("b"), did("a"), {Ends: "Release", Revision: "b", Released: 1}}, "b", ""},
		"Directory": {"A directory has a checked-out commit instead of a revision.", []Past{{Commit: "a", Pruned: 1}, {Commit: "b", Pruned: 1}, {Commit: "a", Pruned: 1}, {Commit: "b", Pruned: 1}}, "b", "a"},
		"Unknown":   {"Without a commit, nothing can be compared.", []Past{{Pruned: 1}, did("b"), {Pruned: 1}, did("b")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := Turns(tc.history, tc.of); got != tc.want {
				t.Errorf("%s\nTurns(%q) = %q, want %q", tc.reason, tc.of, got, tc.want)
			}
		})
	}
}
