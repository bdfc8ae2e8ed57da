package reason

// When an MRD of this sync is deleted, the CRD that Crossplane made for it stays, with all stored objects. Then the inventory takes
// over the CRD. The CRD does not carry Headgate's marks; a proof made with the inventory's key shows that it may be pruned.

// The codes of CRDs that definitions leave.
const (
	LeftByDefinition Code = "LeftByDefinition" // an MRD of this sync is gone, and its CRD is still there
)
