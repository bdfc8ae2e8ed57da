package reason

// The codes of the guards in use and others inside.
const (
	UsersGoFirst          Code = "UsersGoFirst"          // how many objects are deleted before it
	DeletesObjects        Code = "DeletesObjects"        // how many live objects would be deleted with it, and an example
	BreaksUsers           Code = "BreaksUsers"           // how many live objects would be broken without it, and an example
	DeletesOrBreaksUsers  Code = "DeletesOrBreaksUsers"  // how many live objects would be deleted or broken without it, and an example
	DeletesForeignObjects Code = "DeletesForeignObjects" // how many objects of others would be deleted with the namespace, and an example
	UsersUnseen           Code = "UsersUnseen"           // no cluster shows what would be deleted with it
	UsersNotCounted       Code = "UsersNotCounted"       // what would be deleted with it has not been counted yet
	UsersUnknown          Code = "UsersUnknown"          // why what would be deleted with it cannot be counted
)
