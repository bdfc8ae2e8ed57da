package reason

// The codes of MRDs that are not deleted yet.
const (
	OwnersUnknown    Code = "OwnersUnknown"    // why the effect on the CRD is not known
	AwaitsCrossplane Code = "AwaitsCrossplane" // the finalizer that keeps the MRD until Crossplane has noticed the deletion
)
