package reason

// The codes of objects that a sync does not take over.
const (
	NotAdopted  Code = "NotAdopted"  // the object existed before, and the sync adopts none
	MadeByOther Code = "MadeByOther" // the owner, from which nothing is ever taken over
	OwnedBySync Code = "OwnedBySync" // another sync, whose inventory lists the object
	OwnedByTool Code = "OwnedByTool" // another tool

	StillReconciled   Code = "StillReconciled"   // an object of the other tool, which still reconciles this object
	ReconcilerUnknown Code = "ReconcilerUnknown" // the owner, and why it is not known whether it still reconciles the object
)
