package reason

// The codes of the guard schema on merges.
const (
	MergeBreaks         Code = "MergeBreaks"         // the definition whose schema breaks, and may be in use
	MergeUnconverted    Code = "MergeUnconverted"    // the definition whose objects nothing converts
	MergeStorage        Code = "MergeStorage"        // what may make stored objects unreadable
	MergeBreaksUnused   Code = "MergeBreaksUnused"   // the definition whose schema breaks, and that nothing uses
	MergeBreaksNoObject Code = "MergeBreaksNoObject" // the definition whose schema breaks, and that all objects fit
	MergeBreaksStatus   Code = "MergeBreaksStatus"   // the definition whose status breaks, and that nothing in the commit uses
	MergePattern        Code = "MergePattern"        // the definition with a pattern that may refuse more
	MergeDefault        Code = "MergeDefault"        // the definition whose defaults change
	MergeSharing        Code = "MergeSharing"        // the definition with lists or maps that merge in another way
	MergeDeprecates     Code = "MergeDeprecates"     // the definition with a version that becomes deprecated
	MergeMovesStorage   Code = "MergeMovesStorage"   // the definition whose objects are stored in another version
)
