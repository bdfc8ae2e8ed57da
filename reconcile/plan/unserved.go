package plan

import (
	"errors"
	"fmt"
	"slices"
)

// A document whose kind no API serves is often an object whose kind is misspelt. What its file
// declared before was not removed.

// isUnserved reports whether no API serves the kind of the object.
func (s Step) isUnserved() bool { return s.Origin.Path != "" && errors.Is(s.Err, ErrUnserved) }

// replacedByUnserved retains an object, or a definition, if the file that declared it, or a policy,
// declares a kind now that no API serves.
func replacedByUnserved(s Step, c Case) Ruling {
	path := c.Seen.pathOf(s.ID)
	for _, unserved := range c.Steps {
		switch file := unserved.Origin.Path; {
		case !unserved.isUnserved():
		case s.TakesBack && slices.Contains(c.Seen.Inventory.Record.Policies, file):
			return Ruling{Answer: Retained, Reason: fmt.Sprintf("%s declared a policy, and declares %s now, a kind that no API serves; correct the kind, or delete the document if the policy is to go", unserved.Origin, unserved.ID)}
		case !s.TakesBack && path == file:
			return Ruling{Answer: Retained, Reason: fmt.Sprintf("it came from %s, which declares %s now, a kind that no API serves; correct the kind: Headgate prunes the object once the kind is served or the document is gone", unserved.Origin, unserved.ID)}
		}
	}
	return allowed
}
