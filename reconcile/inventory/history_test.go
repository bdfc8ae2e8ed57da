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
