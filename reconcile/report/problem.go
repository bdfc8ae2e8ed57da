package report

import (
	"fmt"

	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/plan"
)

// mostCause is the maximum length of a cause in FirstProblem, in bytes.
const mostCause = 400

// FirstProblem describes the first object that makes a pass fail, with its cause and what to do; "" if there is none.
func (r Report) FirstProblem() string {
	for _, s := range r.Steps {
		if s.Error != "" {
			return fmt.Sprintf("%s: %s; correct the file, or what refuses the object in the cluster: each pass tries again", s.placedName(), legible.Short(s.Error, mostCause))
		}
	}
	for _, s := range r.Steps {
		if s.NotReady != "" {
			return fmt.Sprintf("%s: %s; look at its conditions with 'kubectl describe': each pass looks again", s.placedName(), legible.Short(s.NotReady, mostCause))
		}
	}
	for _, c := range r.Checks {
		if c.State == plan.Broken && c.Reason != "" {
			return fmt.Sprintf("%s: %s", legible.Short(c.ID.String(), mostName), legible.Short(c.Reason, mostCause))
		}
	}
	return ""
}

// mostName is the maximum length of the name of an object in FirstProblem, in bytes.
const mostName = 150

// placedName returns the object of a step with the place that declares it.
func (s Step) placedName() string {
	name := legible.Short(s.ID.String(), mostName)
	if s.Origin == nil || s.placed {
		return name
	}
	return name + " (" + legible.Short(s.Origin.String(), mostName) + ")"
}
