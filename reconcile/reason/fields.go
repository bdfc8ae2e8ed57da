package reason

// What leaves Git leaves the cluster, or the plan names it. Package ownership has the rules; this file adds what only the last
// applied commit shows, and gives every update a reason.

// The codes of updates that change the managers of fields.
const (
	FieldsReclaimed Code = "FieldsReclaimed" // the number of fields, and the field managers that have them since our managed fields were lost
	FieldsUnknown   Code = "FieldsUnknown"   // why the last applied commit is not known, and the fields that stay
	FieldsStay      Code = "FieldsStay"      // fields that the update gives up, and who keeps them
	FieldsGained    Code = "FieldsGained"    // fields that the update begins to manage
	VersionManaged  Code = "VersionManaged"  // the version of managed fields
	NoValueChanges  Code = "NoValueChanges"  // no value
	NotInSource     Code = "NotInSource"     // no value: the last applied commit cannot be rendered again
)
