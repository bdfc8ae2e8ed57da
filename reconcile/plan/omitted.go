package plan

import (
	"errors"

	"headgate.dev/headgate/reconcile/reason"
)

// IsUnserved reports whether no API serves the kind of the object.
func (s Step) IsUnserved() bool { return s.Origin.Path != "" && errors.Is(s.Err, reason.ErrUnserved) }
