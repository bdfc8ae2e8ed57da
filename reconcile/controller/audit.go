package controller

import (
	"headgate.dev/headgate/reconcile/audit"
)

// record writes an entry about an approval on a Sync object to the audit log, once for each entry. A new leader writes it again.
func (j *subject) record(e audit.Entry) {
	e.Sync = j.name()
	j.mu.Lock()
	e.Commit = j.status.LastAttemptedRevision
	j.mu.Unlock()
	j.of.Around.Audit.NoteOnce(e)
}
