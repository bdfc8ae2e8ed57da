package inventory

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Past is the stored result of a pass.
type Past struct {
	When     metav1.Time     `json:"when"` // when the pass ended
	Took     metav1.Duration `json:"took"`
	Revision string          `json:"revision,omitempty"`
	Ends     string          `json:"ends,omitempty"` // for a destroy: how the sync ends

	Activation string `json:"activation"` // the states of the verdict
	Drift      string `json:"drift"`
	ExitCode   int    `json:"exitCode"`
	Said       string `json:"said,omitempty"` // a text about its problems

	Created  int `json:"created,omitempty"`
	Updated  int `json:"updated,omitempty"`
	Pruned   int `json:"pruned,omitempty"`
	Released int `json:"released,omitempty"`
	Held     int `json:"held,omitempty"`
	Failed   int `json:"failed,omitempty"`

	Holds Holds `json:"holds,omitempty"` // the first holds, without keys

	// Holding lists all holds of the pass. It is nil if the pass did not end, so that they are not known.
	Holding *Holds `json:"-"`
	News    bool   `json:"-"` // its holds differ from those of the previous pass
}

// Changed reports whether the pass changed anything in the cluster.
func (p Past) Changed() bool { return p.Created+p.Updated+p.Pruned+p.Released > 0 }

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
