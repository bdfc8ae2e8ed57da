package reason

// The codes of the guard same object.
const (
	ServedTwice Code = "ServedTwice" // the identity under which the commit wants the object
)
