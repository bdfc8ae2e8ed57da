package reason

// The codes of releases.
const (
	ReleaseListed    Code = "ReleaseListed"    // the Sync lists the object
	ReleaseAnnounced Code = "ReleaseAnnounced" // the annotation of the live object, and its value
	ReleaseBegun     Code = "ReleaseBegun"     // a pass, or the verb release, began the release and did not finish it
	ReleaseByHand    Code = "ReleaseByHand"    // a user releases the object with the verb release
	OwnedElsewhere   Code = "OwnedElsewhere"   // the owner of an object that the commit does not declare any more
)
