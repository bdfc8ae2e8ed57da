package reason

// The codes of the guard used.
const (
	UsedInCommit   Code = "UsedInCommit"   // the kind
	UnusedInCommit Code = "UnusedInCommit" // the kind
)
