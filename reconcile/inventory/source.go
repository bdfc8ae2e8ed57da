package inventory

import (
	"fmt"

	"headgate.dev/headgate/render"
)

// A SourceRecord is the source of the objects of an inventory.
type SourceRecord struct {
	Repository string `json:"repository"` // as in render.SourceID
	Path       string `json:"path,omitempty"`
	Ref        string `json:"ref,omitempty"`    // as in render.SourceID; "" if the inventory is older than format 4
	Branch     string `json:"branch,omitempty"` // as in render.SourceID
	Commit     string `json:"commit,omitempty"` // the last commit that was applied or was about to be
	Object     string `json:"object,omitempty"` // the UID of the Sync object; "" if the sync is none
	Taken      int    `json:"taken,omitempty"`  // how often another source took over the inventory

	unknown unknown
}

// SameSource reports whether two records are of the same source, whatever its commit is.
func (r SourceRecord) SameSource(other SourceRecord) bool {
	r.Commit, r.unknown = other.Commit, other.unknown
	return r == other
}

// MayBeNewer reports whether the last applied commit may be newer than the commit of a pass:
//
//	the last applied commit is               | may be newer
//	-----------------------------------------+------------------------------------------------------------------
//	not known, or the pass has no commit     | no
//	the commit of the pass                   | no
//	another, and before is nil               | no: a person named the commit, or the process just began
//	before: known before the ref was read    | no: the ref moved, forward or on purpose back
//	another                                  | yes: another process applied it, and may have read the ref later
func (r SourceRecord) MayBeNewer(than string, before *string) bool {
	switch {
	case r.Commit == "", than == "", r.Commit == than:
		return false
	case before == nil, r.Commit == *before:
		return false
	}
	return true
}

// UnmarshalJSON reads a source and preserves the fields that it does not know.
func (r *SourceRecord) UnmarshalJSON(data []byte) error {
	type plain SourceRecord
	rest, err := unmarshal(data, (*plain)(r))
	r.unknown = rest
	return err
}

// MarshalJSON writes a source, including the fields that were preserved.
func (r SourceRecord) MarshalJSON() ([]byte, error) {
	type plain SourceRecord
	return marshal(plain(r), r.unknown)
}

// String names the source. The name changes with every takeover, so that a setting that names the source takes over only once.
func (r SourceRecord) String() string {
	name := render.SourceID{Repository: r.Repository, Path: r.Path, Ref: r.Ref, Commit: r.Commit}.String()
	if r.Taken == 0 {
		return name
	}
	sign := "?"
	if r.Ref != "" {
		sign = "&"
	}
	return fmt.Sprintf("%s%staken=%d", name, sign, r.Taken)
}
