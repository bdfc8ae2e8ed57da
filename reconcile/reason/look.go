package reason

// The codes of a sync that only looks.
const (
	LeftToApplier  Code = "LeftToApplier"  // the tool that applies the object; "" if it is not known
	RefusedIfSent  Code = "RefusedIfSent"  // the error of an update that no tool has sent
	DiffersUnowned Code = "DiffersUnowned" // the object differs from the commit, and its owner is not known
	AbsentUnowned  Code = "AbsentUnowned"  // the object does not exist, and its owner is not known
	NotUpdated     Code = "NotUpdated"     // the tool that applies the object and has not applied the commit
	NotCreated     Code = "NotCreated"     // the tool that applies neighbouring objects and has not applied this one
	CreateNeedsCRD Code = "CreateNeedsCRD" // the same, and a CRD that the object needs
	CreateWaits    Code = "CreateWaits"    // the same, and what the object waits for
)
