package reason

// The codes of the guards activates and stays active.
const (
	ActivatesNamed   Code = "ActivatesNamed"   // the definition that becomes active, and that something names in full
	ActivatesUnnamed Code = "ActivatesUnnamed" // the definition that becomes active because of a pattern or a package
	StaysUnnamed     Code = "StaysUnnamed"     // the definition that stays active although nothing activates it any more
)
