package reason

// The codes of updates.
const (
	ManagedFieldsMigrate Code = "ManagedFieldsMigrate" // the unserved versions in managed fields
	FinalizerLeft        Code = "FinalizerLeft"        // a pass that stopped left Headgate's finalizer
	TakenOver            Code = "TakenOver"            // the previous owner
)
