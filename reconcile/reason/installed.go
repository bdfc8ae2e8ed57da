package reason

// The codes of the guard installed.
const (
	InstalledByRevision  Code = "InstalledByRevision"  // the name of the package revision
	OnlyCrossplaneWrites Code = "OnlyCrossplaneWrites" // the kind of the object
)
