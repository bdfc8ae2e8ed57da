package reason

// The codes of the guard paused.
const (
	PausedPrune  Code = "PausedPrune"  // the annotation that pauses it
	PausedUpdate Code = "PausedUpdate" // the annotation that pauses it
)
