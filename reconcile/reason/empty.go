package reason

// The codes of the guard empty.
const (
	NothingWanted    Code = "NothingWanted"    // the commit wants no object and declares no definition
	NoDefinitions    Code = "NoDefinitions"    // the commit declares no definition
	NoOwnDefinitions Code = "NoOwnDefinitions" // the commit declares no definition outside of packages in registries
)
