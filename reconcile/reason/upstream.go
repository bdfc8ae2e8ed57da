package reason

// The codes of effects that are pending for too long. The values are the time, and the reason of the wait.
const (
	PendingTooLong   Code = "PendingTooLong"   // of an effect
	NotSentInTime    Code = "NotSentInTime"    // of a create or an update
	NotDeletedInTime Code = "NotDeletedInTime" // of a prune
)
