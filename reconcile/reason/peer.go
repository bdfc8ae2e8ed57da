package reason

// The codes of prunes that wait for other syncs.
const (
	AwaitsSync       Code = "AwaitsSync"       // the sync, which has not rendered the commit yet
	AwaitsBrokenSync Code = "AwaitsBrokenSync" // the sync, and why it cannot render the commit
)
