package reason

// The codes of the guards signatures, unconfirmed and controls.
const (
	DropsSignature      Code = "DropsSignature"      // what the base demands and the commit does not
	SchemasUnconfirmed  Code = "SchemasUnconfirmed"  // the package whose schemas only the commit keeps
	ControlledByAnother Code = "ControlledByAnother" // the package, how many objects another revision than the active one controls, and an example
	ControlUnknown      Code = "ControlUnknown"      // the package, and why it is not known what controls its objects
)
