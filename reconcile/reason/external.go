package reason

// The codes of the guard external.
const (
	DeletesExternal Code = "DeletesExternal" // something outside of the cluster would be deleted with it
)
