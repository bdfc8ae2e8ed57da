package facts

import "headgate.dev/headgate/render/manifest"

// A Fight describes a field that another writer changes as often as Headgate corrects it.
type Fight struct {
	ID      manifest.ID `json:"id"`
	Path    string      `json:"path,omitempty"`    // "" for the object itself, which is deleted again and again
	Manager string      `json:"manager,omitempty"` // "" if not known
	Times   int         `json:"times"`             // how often it was corrected and changed again
	Rests   bool        `json:"rests,omitempty"`   // it is not corrected for now
}
