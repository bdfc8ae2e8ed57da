package manifest

import (
	"cmp"
	"fmt"
)

// Severity is the weight of a finding in the verdict.
type Severity string

// An Error makes a pass fail, a Warning asks for attention, a Note explains.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// A Finding is information for a user about a place in a commit.
type Finding struct {
	Rule     string   `json:"rule"` // a stable name in kebab case: "pattern-matches-nothing"
	Severity Severity `json:"severity"`
	Origin   Origin   `json:"origin"`
	Message  string   `json:"message"`       // the problem in one sentence
	Fix      string   `json:"fix,omitempty"` // advice
}

// Compare orders findings by place, then by rule and message.
func (f Finding) Compare(other Finding) int {
	return cmp.Or(
		f.Origin.Compare(other.Origin),
		cmp.Compare(f.Rule, other.Rule),
		cmp.Compare(f.Message, other.Message),
	)
}

// Count returns a number with a noun, for a message: "1 object", "2 objects".
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
