package api

import (
	"regexp"
	"slices"
	"strings"
)

// A said is what the words of an API server mean where its answers have no field for that, and the code may be any. saidIn and gateIn
// are the only functions that read these words.
type said struct {
	// What other servers did that the API server calls.
	uncalled    bool // an admission webhook did not answer
	slow        bool // it took too long
	denied      bool // an admission webhook or policy refused the object
	refused     bool // the same, in the body of an answer
	unconverted bool // a conversion webhook did not answer
	unstored    bool // the store of the kind begins anew; also while a single object of the kind cannot be read
	unreached   bool // the aggregation layer cannot reach the server of the kind
	etcd        bool // etcd failed

	// Why the object itself is refused; an API server reports these as internal errors.
	misfits  bool // it does not fit its schema or the store
	tooLarge bool // it is too large for the store

	verb string // the verb that RBAC does not allow; one call can need several: an apply of a new object needs patch and create
}

// gate reports whether an admission webhook or policy decided, or should have.
func (s said) gate() bool { return s.uncalled || s.denied }

var cannotVerb = regexp.MustCompile(`" cannot ([a-z]+) resource "`)

// saidBy returns what the text of an error means.
func saidBy(err error) said { return saidIn(err.Error()) }

// saidIn returns what a message of an API server means.
func saidIn(text string) said {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	s := said{
		uncalled:    has("failed calling webhook"),
		slow:        has("deadline exceeded", "imeout"),
		denied:      has("admission webhook \"", "ValidatingAdmissionPolicy '"),
		refused:     has("denied the request", "denied request"), // without the quotes, which JSON escapes
		unconverted: has("conversion webhook for "),
		unstored:    has("storage is (re)initializing"),
		etcd:        has("etcdserver: ", "rpc error: code = Unavailable", "rpc error: code = DeadlineExceeded"),
		tooLarge:    has("request is too large"),
	}
	s.misfits = s.tooLarge || has("failed to create typed patch object", "field not declared in schema", "error decoding from json",
		"request to convert CR to an invalid group/version", "request to convert CR from an invalid group/version")
	lower := strings.ToLower(text)
	s.unreached = strings.Contains(lower, "error trying to reach service") || strings.Contains(lower, "service unavailable")
	if m := cannotVerb.FindStringSubmatch(text); m != nil {
		s.verb = m[1]
	}
	return s
}
