package reason

// The codes of the guard flood.
const (
	WildcardsActivateMany      Code = "WildcardsActivateMany"      // how many definitions wildcards of the policy would activate, the limit, and an example
	ShippedPolicyActivatesMany Code = "ShippedPolicyActivatesMany" // a policy of the package, how many definitions it would activate, the limit, and an example
	LivePolicyActivatesUnnamed Code = "LivePolicyActivatesUnnamed" // a live policy, how many definitions of the package it would activate that no policy of the commit names, an example, and what to do
	PackageActivatesMany       Code = "PackageActivatesMany"       // how many definitions of the package would become active, the limit, and an example
	LivePolicyActivatesAll     Code = "LivePolicyActivatesAll"     // a live policy that activates every definition of the package, and what to do
	PolicyActivatesMany        Code = "PolicyActivatesMany"        // the policy that would activate this definition, how many definitions it would activate, and the limit
	DirectoryActivatesMany     Code = "DirectoryActivatesMany"     // how many definitions of the same package would become active, the directory of the package, and the limit
	LivePolicyActivatesIt      Code = "LivePolicyActivatesIt"      // a live policy that would activate the definition, which no policy of the commit names, and what to do
	NarrowPolicy               Code = "NarrowPolicy"               // what to do: change the live policy
	DeleteDefaultPolicy        Code = "DeleteDefaultPolicy"        // what to do: delete Crossplane's default policy
	WildcardOverUnread         Code = "WildcardOverUnread"         // why a package was not read, and a new wildcard that may activate its definitions
	UnreadUnderWildcard        Code = "UnreadUnderWildcard"        // why the package was not read, a wildcard in force that may activate its definitions, and the policy
	PackageUnreadable          Code = "PackageUnreadable"          // the error of reading a package
	PackageNotRead             Code = "PackageNotRead"             // the kind and the name of a package that Headgate did not read
)
