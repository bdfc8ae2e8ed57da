package report

import (
	"errors"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// homes adds to identities the namespace that objects get in the cluster.
type homes func(manifest.ID) manifest.ID

// step returns a step in the form of a report.
func (h homes) step(s plan.Step) plan.Step {
	return s.Shown(h(s.ID), h.err(s.Err), h.reason)
}

func (h homes) outcome(o plan.Outcome) plan.Outcome {
	o.Err, o.NotReady = h.err(o.Err), h.reason(o.NotReady)
	return o
}

func (h homes) reason(r reason.Reason) reason.Reason {
	if len(r.Values) == 0 {
		return r
	}
	values := make([]any, len(r.Values))
	for i, v := range r.Values {
		switch v := v.(type) {
		case manifest.ID:
			values[i] = h(v)
		case reason.Reason:
			values[i] = h.reason(v)
		case []reason.Reason:
			values[i] = h.reasons(v)
		default:
			values[i] = v
		}
	}
	r.Values = values
	return r
}

func (h homes) reasons(all []reason.Reason) []reason.Reason {
	if all == nil {
		return nil
	}
	shown := make([]reason.Reason, len(all))
	for i, r := range all {
		shown[i] = h.reason(r)
	}
	return shown
}

// err adds namespaces to the reason in an error. Other errors keep their original text.
func (h homes) err(err error) error {
	if made, is := errors.AsType[reason.CodedError](err); is {
		return reason.CodedError{Reason: h.reason(made.Reason)}
	}
	return err
}
