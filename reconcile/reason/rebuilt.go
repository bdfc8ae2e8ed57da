package reason

// The codes of the guard rebuilt.
const (
	OnlyMarked        Code = "OnlyMarked"        // only its marks prove that this sync applied the object
	AnotherUID        Code = "AnotherUID"        // it carries the marks, and its UID is not that of the object that was applied
	RebuildsBeforeEnd Code = "RebuildsBeforeEnd" // the inventory is being rebuilt, and the sync ends
	Rebuilds          Code = "Rebuilds"          // the inventory is being rebuilt
)
