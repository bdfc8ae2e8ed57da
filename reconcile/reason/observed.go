package reason

// The codes of questions that were not answered.
const (
	CountTooLong   Code = "CountTooLong"   // the time limit of the count
	CountForbidden Code = "CountForbidden" // the API server's error
)
