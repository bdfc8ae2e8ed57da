package plan

import (
	"cmp"
	"fmt"

	"headgate.dev/headgate/render/manifest"
)

// A Fight is over a field that somebody changes as often as we put it right.
type Fight struct {
	ID      manifest.ID `json:"id"`
	Path    string      `json:"path,omitempty"`    // "" is the object, which somebody deletes
	Manager string      `json:"manager,omitempty"` // "" where nobody can tell
	Times   int         `json:"times"`             // that it was put right and undone
	Rests   bool        `json:"rests,omitempty"`   // it is not to be put right just now
}

// String says it: "kubectl-edit changed data.k 4 times".
func (f Fight) String() string {
	what := "deleted it"
	if f.Path != "" {
		what = "changed " + f.Path
	}
	return fmt.Sprintf("%s %s again %d times after it was put right", cmp.Or(f.Manager, "someone"), what, f.Times)
}

// fight keeps what is fought over as it is while the fight rests. To write it again and
// again serves nobody, and hides from people that they have to decide.
func fight(s Step, c Case) Ruling {
	if s.Cause != Drift {
		return allowed
	}
	for _, f := range c.Seen.Fights {
		if f.ID == s.ID && f.Rests {
			return Ruling{Answer: Reported, Reason: fmt.Sprintf("fight: %s; it is left alone for a while", f)}
		}
	}
	return allowed
}
