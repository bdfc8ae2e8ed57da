package reason

// The codes of the guard package lost.
const (
	DefinitionLost      Code = "DefinitionLost"      // the directory of the package that declared the definition
	DirectoryNotPackage Code = "DirectoryNotPackage" // the directory that was a package
)
