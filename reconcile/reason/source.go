package reason

// The codes of commits that are not applied.
const (
	Unverified         Code = "Unverified"         // the commit or its tag lacks a required signature
	DependencyNotReady Code = "DependencyNotReady" // a Sync that spec.dependsOn names is not as far as it has to be
	AppliedMeanwhile   Code = "AppliedMeanwhile"   // another process applied another commit after this one read the ref

	Rewritten Code = "Rewritten" // the commit that was applied last
	NoHistory Code = "NoHistory" // the commit that was applied last
)
