package plan

import "headgate.dev/headgate/render/manifest"

// A Fight is over a field that somebody changes as often as we put it right.
type Fight struct {
	ID      manifest.ID `json:"id"`
	Path    string      `json:"path,omitempty"`    // "" is the object, which somebody deletes
	Manager string      `json:"manager,omitempty"` // "" where nobody can tell
	Times   int         `json:"times"`             // that it was put right and undone
	Rests   bool        `json:"rests,omitempty"`   // it is not to be put right just now
}
