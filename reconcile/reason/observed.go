package reason

// The codes of questions that were not answered.
const (
	CountTooLong   Code = "CountTooLong"   // the time limit of the count
	CountForbidden Code = "CountForbidden" // the API server's error
)

// The codes of the guard observed. Package plan has OnlyLookedAt.
const (
	ObservedRefused Code = "ObservedRefused" // the error of an update that would make it as the commit wants
	ObservedDiffers Code = "ObservedDiffers" // its management policy
)
