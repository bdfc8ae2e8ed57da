package reason

// A sync that adopts an object takes over the fields that the commit sets from the tool that applied it before. Otherwise, every
// change would conflict with that tool, and a field that is removed from Git would stay. Fields that only that tool manages are
// leftovers.

// The codes of adoptions.
const (
	FieldsTakenOver Code = "FieldsTakenOver" // the number of fields, and the field managers that applied them
	LeftBehind      Code = "LeftBehind"      // how many fields only these field managers manage, and which fields
	LeftoversMoved  Code = "LeftoversMoved"  // the object, which another writer has changed in the meantime
	LeftoversGo     Code = "LeftoversGo"     // the number of fields, and the field managers that left them behind
)
