package reason

// The codes of steps that wait for others. The first value is what they wait for: an Object, a Field, or an ID.
const (
	Object           Code = "Object"           // an object
	Field            Code = "Field"            // a field and its object
	AwaitsHeld       Code = "AwaitsHeld"       // the guard that holds the object
	AwaitsNowhere    Code = "AwaitsNowhere"    // the origin of the reference; the object is in neither the commit nor the cluster
	AwaitsAbsent     Code = "AwaitsAbsent"     // the object does not exist
	AwaitsUnready    Code = "AwaitsUnready"    // why the object is not ready
	AwaitsDependant  Code = "AwaitsDependant"  // an object that depends on it must be deleted first
	AwaitsUpdate     Code = "AwaitsUpdate"     // an object depends on it until that object is updated
	AwaitsGone       Code = "AwaitsGone"       // an object must be deleted first
	AwaitsOwnEnd     Code = "AwaitsOwnEnd"     // what the deletion of the object itself waits for
	AwaitsRelease    Code = "AwaitsRelease"    // an object that must be released first, because the garbage collector would delete it
	AwaitsMore       Code = "AwaitsMore"       // how many more objects must be deleted first
	DependencyFailed Code = "DependencyFailed" // the object, which was not applied
	DependantFailed  Code = "DependantFailed"  // the object, which was not deleted
)
