package reason

// The codes of the guard others inside.
const (
	WantedInside Code = "WantedInside" // an object of the commit in the namespace
	StaysInside  Code = "StaysInside"  // an object in the namespace that stays
)
