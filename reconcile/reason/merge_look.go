package reason

// The codes of the guards of the phase Merge that name what to look at.
const (
	AddsComposition    Code = "AddsComposition"    // the Composition, and the kind of its composite resources
	AddsObject         Code = "AddsObject"         // the object, of a kind that affects others, or that Headgate does not know
	AddsRights         Code = "AddsRights"         // the managed resource that grants rights or holds credentials
	AddsRunner         Code = "AddsRunner"         // the managed resource that runs a program or makes objects of any kind
	AddsWildcard       Code = "AddsWildcard"       // the pattern, and its policy
	ChangesAsking      Code = "ChangesAsking"      // the object, and the setting of Headgate on it
	ChangesComposition Code = "ChangesComposition" // the Composition of a package, and the package, which composes the same kinds in another way
	ChangesKey         Code = "ChangesKey"         // the object, its label or annotation, and the tool that reads it
	ComposesInactive   Code = "ComposesInactive"   // the Composition, and the inactive definition of a kind that it did not compose before
	ComposesInstead    Code = "ComposesInstead"    // the Composition, the kinds that it composes now, and those that it does not compose any more
	ComposesNoMore     Code = "ComposesNoMore"     // the Composition, and the kinds that it does not compose any more
	ComposesToo        Code = "ComposesToo"        // the Composition, and the kinds that it composes in addition
	DeletesComposition Code = "DeletesComposition" // the Composition, and the kind of its composite resources
	GrantsRole         Code = "GrantsRole"         // the binding, its role, and the subjects that get it
	GrantsRules        Code = "GrantsRules"        // the role that allows more
	HasKey             Code = "HasKey"             // the new object, its label or annotation, and the tool that reads it
	NameInCloudChanges Code = "NameInCloudChanges" // the object, and the external names before and after; "" for none
	NewPackage         Code = "NewPackage"         // the package that was not installed before, and its version
	OtherSource        Code = "OtherSource"        // the object that installs a package, and the sources before and after
	SkipsFromNow       Code = "SkipsFromNow"       // the object that Headgate applied and skips now, and why
	SkipsObject        Code = "SkipsObject"        // the object that the commit adds and Headgate skips, and why
	TrustedVersion     Code = "TrustedVersion"     // the package, and its versions before and after, which are trusted
	UntrustedVersion   Code = "UntrustedVersion"   // the package, its versions before and after, and why that is not trusted
)
