package manifest

import (
	"cmp"
	"fmt"
	"regexp"
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
	About    About    `json:"about,omitzero"`
	Message  string   `json:"message"`       // the problem in one sentence
	Fix      string   `json:"fix,omitempty"` // advice
}

// An About is what a finding is about. It is zero for the commit as a whole. It never holds a line or a count, and the path of a file
// only if the finding is about the file itself.
type About struct {
	Object  ID     `json:"object,omitzero"`
	Field   string `json:"field,omitempty"`   // of the object: spec.versions[0].name
	Subject string `json:"subject,omitempty"` // what the object or the commit uses, names or lacks
}

// An Identity is equal for findings about the same problem, in one commit and in another one.
type Identity struct {
	Rule string
	About
}

// Identity returns the identity of a finding. An index of its field does not count: an insertion into a list moves the other items.
func (f Finding) Identity() Identity {
	id := Identity{f.Rule, f.About}
	id.Field = indices.ReplaceAllString(id.Field, "[]")
	return id
}

var indices = regexp.MustCompile(`\[[0-9]+\]`)

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
