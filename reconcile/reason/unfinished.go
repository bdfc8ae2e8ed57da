package reason

// The codes of the guard unfinished. The values are the object of the oldest create or update that is not done, and since when.
const (
	StillFails Code = "StillFails" // its create or update fails
	StillHeld  Code = "StillHeld"  // a guard holds its create or update
	StillWaits Code = "StillWaits" // its create or update waits for something else
)

// A RefusedError is an API server's refusal that names its cause.
type RefusedError struct {
	By Gate
	error
}

// Unwrap returns the refusal.
func (r RefusedError) Unwrap() error { return r.error }

// Refused returns a refusal with its cause.
func Refused(by Gate, err error) error { return RefusedError{by, err} }

// A Gate is an admission webhook, or an admission policy with its binding, by which an API server refused a request.
type Gate struct{ Webhook, Policy, Binding string }
