package reason

// The codes of prunes on merges.
const (
	DeletesKind     Code = "DeletesKind"     // the definition of a kind whose use is not known
	DeletesObject   Code = "DeletesObject"   // the object
	DeactivatesKind Code = "DeactivatesKind" // the definition
)
