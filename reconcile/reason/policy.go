package reason

// The codes of objects that Headgate only looks at.
const (
	OnlyLookedAt Code = "OnlyLookedAt" // the management policy
	NameNotThere Code = "NameNotThere" // the field for the name of the object, which does not exist, and the origin of the reference
	NotMade      Code = "NotMade"      // the management policy of an object that does not exist, and its origin
)
