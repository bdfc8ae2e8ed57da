package reason

// The codes of the guard omitted.
const (
	LeftToPackage   Code = "LeftToPackage"   // the package with which Crossplane will install it, and the origin of the package's copy
	MayStillBeThere Code = "MayStillBeThere" // something in the commit that Headgate skips and that may have declared it, and why Headgate skips that
	StillThere      Code = "StillThere"      // something in the commit that Headgate skips and that declared it, and why Headgate skips that
	StillElsewhere  Code = "StillElsewhere"  // the file that it was applied from, something else in the commit that Headgate skips and that declares it, and why
)
