package reason

// The codes of the guard impossible.
const (
	ScopeChanges         Code = "ScopeChanges"         // the current scope, the new scope, and the kind of the definition
	NameChanges          Code = "NameChanges"          // the field of the name, the current name, the new name, and the kind of the definition
	StoredVersionLeaves  Code = "StoredVersionLeaves"  // versions that are no longer declared, the CRD with these stored versions, and the storage version
	StorageVersionLeaves Code = "StorageVersionLeaves" // the same, if the current storage version is one of them
	RulesRefused         Code = "RulesRefused"         // the path of a CEL rule that the API server refuses, and the problem
)
