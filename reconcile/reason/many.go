package reason

// The codes of the guard many.
const (
	TooManyPrunes Code = "TooManyPrunes" // the number of prunes, and the limit
)
