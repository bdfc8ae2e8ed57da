package reason

// The codes of the guard drift.
const (
	DriftRefused  Code = "DriftRefused"  // the error of the update that would correct the drift
	DriftReported Code = "DriftReported" // the sync reports drift and does not correct it
)
