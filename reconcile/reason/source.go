package reason

// The codes of commits that are not applied.
const (
	Unverified Code = "Unverified" // the commit or its tag lacks a required signature

	Rewritten Code = "Rewritten" // the commit that was applied last
	NoHistory Code = "NoHistory" // the commit that was applied last
)
