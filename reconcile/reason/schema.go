package reason

// The codes of the guard schema.
const (
	BreaksUnseen       Code = "BreaksUnseen"       // the breaking changes; no cluster shows whether there are custom resources
	BreaksUncounted    Code = "BreaksUncounted"    // the breaking changes; custom resources have not been counted yet
	BreaksUncountable  Code = "BreaksUncountable"  // the breaking changes, and why custom resources cannot be counted
	BreaksInUse        Code = "BreaksInUse"        // the breaking changes, how many custom resources exist, an example, and the removed versions
	BreaksInUseUnknown Code = "BreaksInUseUnknown" // a BreaksInUse, and why the custom resources cannot be checked
	BreaksObjects      Code = "BreaksObjects"      // the breaking changes, and what custom resources would lose or why they would be refused
	BreaksNoObject     Code = "BreaksNoObject"     // the breaking changes, and how many custom resources exist; all of them fit
)
