package reason

// The codes of the guard depended on.
const (
	DependantKept  Code = "DependantKept"  // the object that depends on it and is kept on purpose
	DependantStays Code = "DependantStays" // the object that depends on it
	UserStays      Code = "UserStays"      // the object that must be deleted before it
)
