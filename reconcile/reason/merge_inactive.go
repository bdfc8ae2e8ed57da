package reason

// The codes of the guard inactive.
const (
	InactiveBreaks Code = "InactiveBreaks" // the inactive definition that breaks or goes
)
