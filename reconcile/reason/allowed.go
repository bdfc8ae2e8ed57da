package reason

// The codes of the guard allowed.
const (
	ApplyNotAllowed     Code = "ApplyNotAllowed"     // why allowedKinds does not allow the object
	PruneNotAllowed     Code = "PruneNotAllowed"     // why allowedKinds does not allow pruning the object
	KindNotListed       Code = "KindNotListed"       // the kind, which allowedKinds does not list
	ScopeNotListed      Code = "ScopeNotListed"      // the kind, which is cluster-scoped, but which allowedKinds lists only in namespaces
	NamespaceNotListed  Code = "NamespaceNotListed"  // the kind, and the namespace for which allowedKinds does not list it
	NameNotListed       Code = "NameNotListed"       // the kind, and the name for which allowedKinds does not list it
	PatternTooWide      Code = "PatternTooWide"      // the pattern of the policy, and the value of activation.allow
	PatternOpens        Code = "PatternOpens"        // the pattern of the policy, the value of activation.allow, and a definition that the pattern activates
	DefinitionOpens     Code = "DefinitionOpens"     // the value of activation.allow
	CRDOpens            Code = "CRDOpens"            // the value of activation.allow
	PackageOpens        Code = "PackageOpens"        // how many definitions of the package would become active, an example, and the value of activation.allow
	PackageShipsPolicy  Code = "PackageShipsPolicy"  // the policy in the package, its pattern, and the value of activation.allow
	PackageNotJudged    Code = "PackageNotJudged"    // why the definitions of the package are not known
	PackageUnpinned     Code = "PackageUnpinned"     // the image of the package with a digest
	PackagePullsAlways  Code = "PackagePullsAlways"  // the package has packagePullPolicy Always
	PackageResolves     Code = "PackageResolves"     // Crossplane chooses the dependencies of the package
	PackageDependsOn    Code = "PackageDependsOn"    // the dependencies of the package that the commit does not declare
	RewritesImages      Code = "RewritesImages"      // the ImageConfig replaces images of packages
	BehindPackages      Code = "BehindPackages"      // the kind of the object, which Headgate does not know
	ActivationUnchecked Code = "ActivationUnchecked" // the error of reading the step's object
)
