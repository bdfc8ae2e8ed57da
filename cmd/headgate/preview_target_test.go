package main

import (
	"testing"

	"headgate.dev/headgate/reconcile/forge"
)

// After a pull request is closed, another one with its head decides the status of the head.
func TestHeir(t *testing.T) {
	pull := func(number int, head, target string) forge.Pull {
		return forge.Pull{Number: number, Head: head, Target: target}
	}
	closed := pull(7, "a", "main")
	cases := map[string]struct {
		reason string
		open   []forge.Pull
		want   int // 0 if there is nothing to do
	}{
		"None":        {"No other is open.", nil, 0},
		"SameHead":    {"Another one has the head.", []forge.Pull{pull(8, "b", "main"), pull(9, "a", "staging")}, 9},
		"OtherHead":   {"The others have statuses of their own.", []forge.Pull{pull(8, "b", "main")}, 0},
		"Itself":      {"It was reopened, which starts another run.", []forge.Pull{closed}, 0},
		"OtherTarget": {"Nobody may choose a target that is not listed.", []forge.Pull{pull(8, "a", "mine")}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := (&previewFlags{targets: []string{"main", "staging"}}).heir(closed, tc.open)
			if got.Number != tc.want || (err == nil) != (tc.want != 0) {
				t.Errorf("%s\nheir(...) = %d, %v; want %d", tc.reason, got.Number, err, tc.want)
			}
		})
	}
}
