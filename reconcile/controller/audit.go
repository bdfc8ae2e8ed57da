package controller

import (
	"log/slog"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/audit"
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
	event, other := audit.Suspended, audit.Resumed
	if was {
		event, other = other, event
	}
	j.mu.Lock()
	delete(j.recorded, [3]string{string(event)}) // it happens again
	delete(j.recorded, [3]string{string(other)})
	j.mu.Unlock()
	j.record(audit.Entry{Event: event})
}
