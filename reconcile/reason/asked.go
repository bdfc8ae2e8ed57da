package reason

// The codes of definitions that are kept.
const (
	ActivationFinal  Code = "ActivationFinal"  // no policy names the definition
	PolicyPaused     Code = "PolicyPaused"     // the policy that names the definition
	DefinitionPaused Code = "DefinitionPaused" // the definition itself is paused
)
