package plan

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unfinished is the guard that holds prunes while a create or an update of the same pass is not done. The object of a prune may be
// what the other object was to replace, or may still be in use by it, and neither names nor error texts show which.
const Unfinished GuardName = "unfinished"

// An Undone is a create or an update that is not done.
type Undone struct {
	ID    manifest.ID
	Since metav1.Time // when a pass first found it undone; zero if no earlier pass did
	Why   reason.Code

	RefusedBy reason.Gate
}

// Undone returns the creates and updates that are not done, the oldest first. done holds the outcomes of a pass; nil if it has sent
// nothing. Then only known failures and holds are undone.
func (p Plan) Undone(done map[manifest.ID]Outcome) []Undone {
	var all []Undone
	for _, s := range p.Steps {
		if update, has := p.Instead[s.ID]; has && s.Action != Prune {
			s = update
		}
		o, sent := done[s.ID]
		err := cmp.Or(s.Err, o.Err)
		u := Undone{ID: s.ID, Since: p.UndoneSince[s.ID]}
		switch {
		case s.Deactivates:
			continue
		case s.Action == Hold && s.Would.Writes():
			u.Why = reason.StillHeld
		case !s.Applies():
			continue
		case err != nil:
			u.Why = reason.StillFails
			if by, is := errors.AsType[reason.RefusedError](err); is {
				u.RefusedBy = by.By
			}
		case done != nil && (!sent || o.More):
			u.Why = reason.StillWaits
		default:
			continue
		}
		all = append(all, u)
	}
	slices.SortStableFunc(all, func(a, b Undone) int {
		switch {
		case a.Since.Equal(&b.Since):
			return cmp.Compare(a.Why, b.Why)
		case b.Since.IsZero(), !a.Since.IsZero() && a.Since.Before(&b.Since):
			return -1
		}
		return 1
	})
	return all
}

// WaitsFor returns why a prune is not made while these creates and updates are undone; no reason if it is made. An object that is
// being deleted waits for nothing.
func (s Step) WaitsFor(undone []Undone) reason.Reason {
	if len(undone) == 0 || s.Action != Prune || s.Terminating {
		return reason.Reason{}
	}
	if slices.ContainsFunc(exceptions, func(excepts exception) bool { return excepts(s, undone) }) {
		return reason.Reason{}
	}
	return undone[0].Why.With(undone[0].ID, undone[0].Since)
}

// An exception reports whether a prune is made although something is undone.
type exception func(s Step, undone []Undone) bool

// exceptions lists the prunes that are made although something is undone. Besides these, a person can approve prunes.
var exceptions = []exception{
	// The API server names the webhook or policy in its refusal. Nothing can be applied until it is gone.
	func(s Step, undone []Undone) bool {
		return slices.ContainsFunc(undone, func(u Undone) bool { return IsIn(u.RefusedBy, s) })
	},
	// Access must end soon after it was removed. A Role without its binding grants nothing, so it waits like everything else.
	func(s Step, undone []Undone) bool {
		return s.ID.Group == RBAC && strings.HasSuffix(s.ID.Kind, "RoleBinding") &&
			!slices.ContainsFunc(undone, func(u Undone) bool { return u.ID.Group == RBAC })
	},
}

// RBAC is the API group of roles and bindings.
const RBAC = "rbac.authorization.k8s.io"

// IsIn reports whether a step deletes the gate: the policy, its binding, or the configuration that contains the webhook.
func IsIn(g reason.Gate, s Step) bool {
	switch {
	case !s.Admits():
		return false
	case strings.HasSuffix(s.ID.Kind, "WebhookConfiguration"):
		return g.Webhook != "" && slices.Contains(s.Webhooks, g.Webhook)
	case strings.HasSuffix(s.ID.Kind, "Binding"):
		return s.ID.Name == g.Binding
	}
	return s.ID.Name == g.Policy
}

// Admits reports whether the step's object is a webhook configuration or an admission policy.
func (s Step) Admits() bool { return s.ID.Group == "admissionregistration.k8s.io" }

// AsksPerson reports whether the plan holds something that a person can approve, or whether its pass may, because the pass before held
// prunes after its creates and updates.
func (p Plan) AsksPerson() bool {
	return p.Approval != nil || slices.ContainsFunc(p.Held, func(h inventory.Hold) bool { return h.Guard == string(Unfinished) })
}

// IsUnfinished reports whether the guard Unfinished holds a prune.
func (s Step) IsUnfinished() bool { return s.Action == Hold && s.Guard == Unfinished }

// IsInside reports whether an object is in a namespace.
func IsInside(id, namespace manifest.ID) bool {
	return namespace.IsNamespace() && id.Namespace == namespace.Name
}

// NotEmpty returns why a namespace is not pruned: an object in it could not be pruned. It returns no reason for other steps.
func (s Step) NotEmpty(done []Outcome) reason.Reason {
	if s.Action != Prune {
		return reason.Reason{}
	}
	for _, o := range done {
		if o.Action == Prune && o.Err != nil && IsInside(o.ID, s.ID) {
			return reason.NamespaceNotEmpty.With(o.ID)
		}
	}
	return reason.Reason{}
}
