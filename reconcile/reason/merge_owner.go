package reason

// The codes of the guard owner on merges.
const (
	FirstForCrossplane Code = "FirstForCrossplane" // the object because of which Crossplane makes the CRDs in a new cluster, and who makes them now
	LastForCrossplane  Code = "LastForCrossplane"  // the object without which Headgate makes the CRDs in a new cluster, and who makes them now
)
