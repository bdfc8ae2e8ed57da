package reason

// The codes of the guards impossible and schema on package upgrades.
const (
	PackageInstalls     Code = "PackageInstalls"     // the name of the definition, and the reason of the ruling
	PackageInstallsMany Code = "PackageInstallsMany" // the same, and how many other definitions there are
)

// The codes of package upgrades.
const (
	NotUpdatedAnyMore Code = "NotUpdatedAnyMore" // the new version of a package does not contain a CRD or an XRD
	KindDropped       Code = "KindDropped"       // the new version of a package does not contain a definition
	ObjectsNotCounted Code = "ObjectsNotCounted" // why custom resources cannot be counted
	ObjectsExist      Code = "ObjectsExist"      // how many custom resources exist, and an example
	NoObjects         Code = "NoObjects"         // no custom resource exists
)
