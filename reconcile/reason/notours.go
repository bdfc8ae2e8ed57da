package reason

// The codes of the guard not ours. The codes of objects that a sync does not take over stand in terms.go.
const (
	StillMade      Code = "StillMade"      // the package revision that owns the CRD and will make it again
	OwnedByAnother Code = "OwnedByAnother" // the other owner
	MadeForMRD     Code = "MadeForMRD"     // the ManagedResourceDefinition for which Crossplane made the CRD, and which this sync removes or has removed
	MarkMissing    Code = "MarkMissing"    // it does not carry the mark of the sync any more
	NotProven      Code = "NotProven"      // only its marks show that Headgate applied it
)
