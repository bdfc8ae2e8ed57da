package reason

// The codes of the guard dropped.
const (
	DropsKind       Code = "DropsKind"       // the kind that may be in use
	DropsUnusedKind Code = "DropsUnusedKind" // the kind
)
