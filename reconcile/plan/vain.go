package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// An object that moved to another kind, namespace or name was not removed if what it became cannot be
// created. Often that is misspelt.

// isUnserved reports whether no API serves the kind of the object.
func (s Step) isUnserved() bool { return s.Origin.Path != "" && errors.Is(s.Err, ErrUnserved) }

// isRefused reports whether the object is to be there and cannot be applied, for a reason that has
// nothing to do with what is there already.
func isRefused(s Step, have Inventory) bool {
	switch {
	case s.Origin.Path == "":
		return false
	case s.Action == Hold && s.Guard == guardNotOurs:
		_, owned := have.Entries[s.ID]
		return !owned
	}
	return s.Action == Create && s.Cause != Drift && s.Err != nil && !mayPassLater(s.Err)
}

// mayPassLater reports whether an API server may accept an object once another one is gone: a quota, a
// port and many admission webhooks look at what is there.
func mayPassLater(err error) bool {
	return slices.ContainsFunc([]string{"admission webhook", "exceeded quota", "already allocated"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}

// InVain returns why an object is not pruned after all, given the outcomes so far: what its file
// declares instead, or what has its kind and name, was not created.
func (p Plan) InVain(s Step, done []Outcome) error {
	if p.Ends != NoEnding || s.Action != Prune || s.TakesBack {
		return nil
	}
	for _, o := range done {
		if o.Err != nil && o.Action == Prune && s.ID.Group == "" && s.ID.Kind == "Namespace" && o.ID.Namespace == s.ID.Name {
			return fmt.Errorf("not deleted: %s in it stays, and would be deleted with it", o.ID)
		}
		if o.Action != Create || o.Err == nil {
			continue
		}
		i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.ID == o.ID })
		if i < 0 {
			continue
		}
		if c := p.Steps[i]; c.Origin.Path != "" && c.Cause != Drift && !mayPassLater(o.Err) && (c.Origin.Path == s.path || isMoved(s.ID, c.ID)) {
			return fmt.Errorf("not deleted: %s declares %s instead, which was not created; correct that, or delete the document", c.Origin, c.ID)
		}
	}
	return nil
}

// replacedInVain retains an object if its file declares another one now that is refused, or if the
// refused one is of the same kind and name; and a definition if the file of a policy declares a kind
// now that no API serves.
func replacedInVain(s Step, c Case) Ruling {
	path := c.Seen.pathOf(s.ID)
	for _, o := range c.Steps {
		if o.ID == s.ID || !isRefused(o, c.Seen.Inventory) {
			continue
		}
		switch {
		case s.TakesBack:
			if o.isUnserved() && slices.Contains(c.Seen.Inventory.Record.Policies, o.Origin.Path) {
				return Ruling{Answer: Retained, Reason: fmt.Sprintf("%s declared a policy, and declares %s now, a kind that no API serves; correct the kind, or delete the document if the policy is to go", o.Origin, o.ID)}
			}
		case path == o.Origin.Path && o.isUnserved():
			return Ruling{Answer: Retained, Reason: fmt.Sprintf("it came from %s, which declares %s now, a kind that no API serves; correct the kind: Headgate prunes the object once the kind is served or the document is gone", o.Origin, o.ID)}
		case path == o.Origin.Path || isMoved(s.ID, o.ID):
			return Ruling{Answer: Retained, Reason: fmt.Sprintf("%s declares %s instead, which Headgate cannot apply; correct that: Headgate prunes the object once the other one is there or the document is gone", o.Origin, o.ID)}
		}
	}
	return allowed
}

// isMoved reports whether two objects differ in their namespaces only.
func isMoved(from, to manifest.ID) bool {
	from.Namespace = to.Namespace
	return from == to
}
