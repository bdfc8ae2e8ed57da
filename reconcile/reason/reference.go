package reason

// The codes of fields that cannot be copied. The first value is the Field, the last is the origin of the reference.
const (
	SourceAbsent     Code = "SourceAbsent"     // the object with the field does not exist
	SourceUnreadable Code = "SourceUnreadable" // the error of reading the object
	FieldAbsent      Code = "FieldAbsent"      // the object does not have the field
	FieldAmbiguous   Code = "FieldAmbiguous"   // how many fields the path matches
	FieldNotCopied   Code = "FieldNotCopied"   // the value of the field cannot be copied
	FieldUnfit       Code = "FieldUnfit"       // the path to which the value cannot be copied, and why; without an origin
)
