package controller

import (
	"log/slog"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/audit"
	"headgate.dev/headgate/reconcile/fleet"
)

// mostRecorded bounds what is remembered of the entries of a Sync.
const mostRecorded = 1000

// record writes an entry about a Sync object to the audit log, once for each entry. A new leader writes it again.
func (j *subject) record(e audit.Entry) {
	e.Sync = j.name()
	j.mu.Lock()
	e.Commit = j.status.LastAttemptedRevision
	key := [3]string{string(e.Event), e.Digest, e.At + e.Reason}
	again := j.recorded[key]
	if len(j.recorded) >= mostRecorded || j.recorded == nil {
		j.recorded = map[[3]string]bool{}
	}
	j.recorded[key] = true
	j.mu.Unlock()
	if again {
		return
	}
	if err := j.of.Around.Audit.Write(e); err != nil {
		slog.Error("the audit log cannot be written", "sync", e.Sync, "event", e.Event, "error", err)
	}
}

// recordSuspension records that a Sync object is suspended, or that this ends. before is nil if the object was not seen before.
func (j *subject) recordSuspension(before, now *v1alpha1.Sync) {
	was := before != nil && before.Spec.Suspend
	if was == now.Spec.Suspend {
		return
	}
	j.mu.Lock()
	for key := range j.recorded {
		if key[0] == string(audit.Suspended) || key[0] == string(audit.Resumed) {
			delete(j.recorded, key) // it happens again
		}
	}
	j.mu.Unlock()
	j.record(fleet.Suspension(*now))
}
