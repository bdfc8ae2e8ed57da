package reason

// The codes of packages that were not sent.
const (
	LivePolicyWider Code = "LivePolicyWider" // a live policy, and a pattern of it that the plan does not assume
)
