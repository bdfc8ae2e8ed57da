package plan

import "headgate.dev/headgate/render/manifest"

// A Fight is over a field that another writer changes as often as Headgate corrects it.
type Fight struct {
	ID      manifest.ID `json:"id"`
	Path    string      `json:"path,omitempty"`    // "" is the object itself, which is deleted
	Manager string      `json:"manager,omitempty"` // "" if not known
	Times   int         `json:"times"`             // that it was put right and undone
	Rests   bool        `json:"rests,omitempty"`   // it is not to be put right just now
}
