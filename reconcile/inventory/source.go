package inventory

import (
	"headgate.dev/headgate/render"
)

// A SourceRecord is the source of the objects of an inventory.
type SourceRecord struct {
	Repository string `json:"repository"` // as in render.SourceID
	Path       string `json:"path,omitempty"`
	Commit     string `json:"commit,omitempty"` // the last commit that was applied or was about to be

	unknown unknown
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

func (r SourceRecord) String() string {
	return render.SourceID{Repository: r.Repository, Path: r.Path}.String()
}
