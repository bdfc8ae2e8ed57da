package reason

// The codes of objects that are not ready.
const (
	NotThere             Code = "NotThere"             // the object is not in the cluster yet
	NotBrought           Code = "NotBrought"           // no package has installed the definition yet
	WasDeleted           Code = "WasDeleted"           // the object was deleted
	CRDNotServed         Code = "CRDNotServed"         // an error, the CRD that was applied but is not served, and why
	BeingDeleted         Code = "BeingDeleted"         // the object is being deleted
	FieldsMigrated       Code = "FieldsMigrated"       // only the managed fields of the object were written
	StatusMessage        Code = "StatusMessage"        // the message of a condition, or of the status
	HealthCheck          Code = "HealthCheck"          // the expression of spec.healthCheckExprs that decided, and its result
	StatusIs             Code = "StatusIs"             // the status, which has no message
	ConditionIs          Code = "ConditionIs"          // a condition, its status and its message
	ConditionNotTrue     Code = "ConditionNotTrue"     // a condition that is not true and has no message
	ConditionNotReported Code = "ConditionNotReported" // a condition that the API server has not reported
	PausedByUser         Code = "PausedByUser"         // the annotation that pauses the object
	NotActivated         Code = "NotActivated"         // Crossplane has not activated the definition
	Blocked              Code = "Blocked"              // Crossplane's message about a definition that it cannot establish
	BlockedSilently      Code = "BlockedSilently"      // Crossplane cannot establish the definition and has no message
	CRDApplied           Code = "CRDApplied"           // why the CRD that Crossplane has applied for the definition is not served
	Establishing         Code = "Establishing"         // Crossplane is establishing the CRD of the definition
	NotLookedAt          Code = "NotLookedAt"          // Crossplane has not reconciled the policy
	VersionNotLookedAt   Code = "VersionNotLookedAt"   // Crossplane has not reconciled this version of the package
	Installing           Code = "Installing"           // Crossplane is installing the package
)
