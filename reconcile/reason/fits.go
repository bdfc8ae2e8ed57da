package reason

// The codes of custom resources that do not fit a new schema.
const (
	LosesField  Code = "LosesField"  // how many objects set a field that is lost, the total, the field, and an example
	IsRefused   Code = "IsRefused"   // how many objects are refused, the total, why, and an example
	MoreMisfits Code = "MoreMisfits" // how many more reasons there are

	NotAllLookedAt Code = "NotAllLookedAt" // how many objects were checked, all of which fit; there are more
)
