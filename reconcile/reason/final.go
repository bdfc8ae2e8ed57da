package reason

// The codes of the guard final.
const (
	LivePolicyNames  Code = "LivePolicyNames"  // a live policy that names the definition, and what to do
	NoRevision       Code = "NoRevision"       // no package revision controls the definition
	RevisionInactive Code = "RevisionInactive" // the package revision
	NoSafeStart      Code = "NoSafeStart"      // the package
)
