package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Past is the stored result of a pass.
type Past struct {
	When     metav1.Time     `json:"when"` // when the pass ended
	Took     metav1.Duration `json:"took"`
	Revision string          `json:"revision,omitempty"`
	Commit   string          `json:"commit,omitempty"` // the checked-out commit of a directory, which has no revision
	Ends     string          `json:"ends,omitempty"`   // for a destroy: how the sync ends

	Activation string `json:"activation"` // the states of the verdict
	Drift      string `json:"drift"`
	ExitCode   int    `json:"exitCode"`
	Said       string `json:"said,omitempty"` // a text about its problems

	Created  int `json:"created,omitempty"`
	Updated  int `json:"updated,omitempty"`
	Pruned   int `json:"pruned,omitempty"`
	Deleting int `json:"deleting,omitempty"` // deletions that the pass began and that were not over at its end
	Released int `json:"released,omitempty"`
	Held     int `json:"held,omitempty"`
	Failed   int `json:"failed,omitempty"`

	Holds Holds `json:"holds,omitempty"` // the first holds, without keys

	// Holding lists all holds of the pass. It is nil if the pass did not end, so that they are not known.
	Holding *Holds `json:"-"`
	News    bool   `json:"-"` // its holds differ from those of the previous pass
	Undone  Undone `json:"-"` // stored with Holding

	Failures Failures `json:"-"` // stored with Holding
}

// Changed reports whether the pass changed anything in the cluster.
func (p Past) Changed() bool { return p.Created+p.Updated+p.Pruned+p.Deleting+p.Released > 0 }

// Did lists what the pass did, held and failed to do: "3 created, 4 pruned".
func (p Past) Did() string {
	var did []string
	for _, part := range []struct {
		n    int
		what string
	}{{p.Created, "created"}, {p.Updated, "updated"}, {p.Pruned, "pruned"}, {p.Deleting, "being deleted"}, {p.Released, "released"}, {p.Held, "held"}, {p.Failed, "failed"}} {
		if part.n > 0 {
			did = append(did, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return strings.Join(did, ", ")
}

// Turns returns the other revision if the last passes applied this revision and another one in turn: A, B, A, B. It also returns
// when the last of these passes ended. Passes that changed nothing do not count.
func Turns(history []Past, this string) (other string, last metav1.Time) {
	var applied []string // without repetitions, the newest first
	for _, p := range slices.Backward(history) {
		of := cmp.Or(p.Revision, p.Commit)
		if !p.Changed() || p.Ends != "" || of == "" {
			continue
		}
		if len(applied) == 0 {
			last = p.When
		}
		if n := len(applied); n == 0 || applied[n-1] != of {
			applied = append(applied, of)
		}
	}
	if len(applied) < 4 || applied[0] != applied[2] || applied[1] != applied[3] {
		return "", last
	}
	switch this {
	case applied[0]:
		return applied[1], last
	case applied[1]:
		return applied[0], last
	}
	return "", last
}

// mostPast is the maximum number of remembered passes.
const mostPast = 10

// Recalled returns a history with one more pass, the newest last. If the pass changed nothing and had the same result
// and holds as the previous one, it returns the same history and false, so that such a pass writes nothing.
func Recalled(history []Past, p Past) ([]Past, bool) {
	if p.Holding != nil {
		p.Holds, p.Holding = p.Holding.brief(), nil
	}
	if n := len(history); n > 0 && !p.Changed() && !p.News {
		last := history[n-1]
		if last.Activation == p.Activation && last.Drift == p.Drift && last.ExitCode == p.ExitCode {
			return history, false
		}
	}
	p.News = false
	from := max(len(history)+1-mostPast, 0)
	return append(append(make([]Past, 0, mostPast), history[min(from, len(history)):]...), p), true
}

// Commits returns the commits that were applied, as far as they are known, the newest first: the recorded one, and those of the last
// passes.
func (inv Inventory) Commits() []string {
	commits := []string{inv.Record.Source.Commit}
	for _, p := range slices.Backward(inv.History) {
		commits = append(commits, cmp.Or(p.Revision, p.Commit))
	}
	known := map[string]bool{"": true}
	return slices.DeleteFunc(commits, func(commit string) bool {
		old := known[commit]
		known[commit] = true
		return old
	})
}
