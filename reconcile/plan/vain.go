package plan

import (
	"errors"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// An object that moved to another kind, namespace or name was not removed if what it became cannot be
// created. Often that is misspelt.

// The codes of prunes that were not sent.
const (
	NamespaceNotEmpty Code = "NamespaceNotEmpty" // an object in the namespace that stays
	NotReplaced       Code = "NotReplaced"       // the file of the object, and the object that it declares instead, which was not created
)

// IsUnserved reports whether no API serves the kind of the object.
func (s Step) IsUnserved() bool { return s.Origin.Path != "" && errors.Is(s.Err, ErrUnserved) }

// MayPassLater reports whether an API server may accept an object once another one is gone: a quota, a
// port and many admission webhooks look at what is there.
func MayPassLater(err error) bool {
	return slices.ContainsFunc([]string{"admission webhook", "exceeded quota", "already allocated"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}

// InVain returns why an object is not pruned after all, given the outcomes so far: what its file
// declares instead, or what has its kind and name, was not created.
func (p Plan) InVain(s Step, done []Outcome) error {
	if p.Ends != NoEnding || s.Action != Prune || s.Deactivates {
		return nil
	}
	refused := map[manifest.ID]bool{}
	for _, o := range done {
		if o.Err != nil && o.Action == Prune && s.ID.Group == "" && s.ID.Kind == "Namespace" && o.ID.Namespace == s.ID.Name {
			return ReasonError{NamespaceNotEmpty.With(o.ID)}
		}
		if o.Err != nil && o.Action == Create && !MayPassLater(o.Err) {
			refused[o.ID] = true
		}
	}
	if len(refused) == 0 {
		return nil
	}
	for _, c := range p.Steps {
		if c.Origin.Path != "" && c.Cause != Drift && (c.Origin.Path == s.path || IsMoved(s.ID, c.ID)) && refused[c.ID] {
			return ReasonError{NotReplaced.With(c.Origin, c.ID)}
		}
	}
	return nil
}

// IsMoved reports whether two objects differ in their namespaces only.
func IsMoved(from, to manifest.ID) bool {
	from.Namespace = to.Namespace
	return from == to
}
