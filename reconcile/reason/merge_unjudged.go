package reason

// The codes of the guard unjudged.
const (
	NotJudged Code = "NotJudged" // the object whose effects Headgate does not know
)
