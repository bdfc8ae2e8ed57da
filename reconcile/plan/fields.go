package plan

import (
	"strings"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/reason"
)

// UnknownManager is the field manager in a FieldsStay of a field that another writer changed after managed fields were lost.
const UnknownManager = ownership.Nobody

// Few returns the first fields for a finding.
func Few(fields []string) string {
	const most = 8
	if len(fields) > most {
		return strings.Join(fields[:most], ", ") + ", …"
	}
	return strings.Join(fields, ", ")
}

// Explained returns the changes of a step and its reason. Every update that is sent has one of them.
func (s Step) Explained() ([]diff.Change, reason.Reason) {
	changes, why := s.Changes(), reason.And(s.Why(), s.GivesUp)
	switch {
	case len(changes) > 0, !why.None():
		return changes, why
	case s.Action != Update, s.Err != nil, s.Waiting(): // it is not sent
		return changes, why
	case s.Live == nil, s.After == nil:
		return nil, reason.NoValueChanges.With()
	}
	gained, version := ownership.Gained(s.Live, s.After), ownership.VersionOf(s.After)
	switch {
	case len(gained) > 0:
		return nil, reason.FieldsGained.With(Few(gained))
	case version != ownership.VersionOf(s.Live):
		return nil, reason.VersionManaged.With(version)
	}
	return nil, reason.NoValueChanges.With()
}
