package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unfinished is the guard that holds prunes while a create or an update of the same pass is not done. The object of a prune may be
// what the other object was to replace, or may still be in use by it, and neither names nor error texts show which.
const Unfinished GuardName = "unfinished"

// The codes of the guard unfinished. The values are the object of the oldest create or update that is not done, and since when.
const (
	StillFails Code = "StillFails" // its create or update fails
	StillHeld  Code = "StillHeld"  // a guard holds its create or update
	StillWaits Code = "StillWaits" // its create or update waits for something else
)

// An Undone is a create or an update that is not done.
type Undone struct {
	ID    manifest.ID
	Since metav1.Time // when a pass first found it undone; zero if no earlier pass did
	Why   Code

	RefusedBy Gate
}

// Undone returns the creates and updates that are not done, the oldest first. done holds the outcomes of a pass; nil if it has sent
// nothing. Then only known failures and holds are undone.
func (p Plan) Undone(done map[manifest.ID]Outcome) []Undone {
	var all []Undone
	for _, s := range p.Steps {
		if s.Otherwise != nil && s.Action != Prune {
			s = *s.Otherwise
		}
		o, sent := done[s.ID]
		err := cmp.Or(s.Err, o.Err)
		u := Undone{ID: s.ID, Since: p.UndoneSince[s.ID]}
		switch {
		case s.Deactivates:
			continue
		case s.Action == Hold && s.Would.writes():
			u.Why = StillHeld
		case !s.writes():
			continue
		case err != nil:
			u.Why = StillFails
			if by, is := errors.AsType[RefusedError](err); is {
				u.RefusedBy = by.By
			}
		case done != nil && (!sent || o.More):
			u.Why = StillWaits
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
func (s Step) WaitsFor(undone []Undone) Reason {
	if len(undone) == 0 || s.Action != Prune || s.Terminating || slices.ContainsFunc(exceptions, func(excepts exception) bool { return excepts(s, undone) }) {
		return Reason{}
	}
	return undone[0].Why.With(undone[0].ID, undone[0].Since)
}

// An exception reports whether a prune is made although something is undone.
type exception func(s Step, undone []Undone) bool

// exceptions lists the prunes that are made although something is undone. Besides these, a person can approve prunes.
var exceptions = []exception{
	// The API server names the webhook or policy in its refusal. Nothing can be applied until it is gone.
	func(s Step, undone []Undone) bool {
		return slices.ContainsFunc(undone, func(u Undone) bool { return u.RefusedBy.isIn(s) })
	},
	// Access must end soon after it was removed. A Role without its binding grants nothing, so it waits like everything else.
	func(s Step, undone []Undone) bool {
		return s.ID.Group == rbac && strings.HasSuffix(s.ID.Kind, "RoleBinding") &&
			!slices.ContainsFunc(undone, func(u Undone) bool { return u.ID.Group == rbac })
	},
}

const rbac = "rbac.authorization.k8s.io"

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

// isIn reports whether a step deletes the gate: the policy, its binding, or the configuration that contains the webhook.
func (g Gate) isIn(s Step) bool {
	switch {
	case !s.admits():
		return false
	case strings.HasSuffix(s.ID.Kind, "WebhookConfiguration"):
		return g.Webhook != "" && slices.Contains(s.Webhooks, g.Webhook)
	case strings.HasSuffix(s.ID.Kind, "Binding"):
		return s.ID.Name == g.Binding
	}
	return s.ID.Name == g.Policy
}

// admits reports whether the step's object is a webhook configuration or an admission policy.
func (s Step) admits() bool { return s.ID.Group == "admissionregistration.k8s.io" }

// webhooksOf returns the names of the webhooks in a webhook configuration, according to its managed fields.
func webhooksOf(live metav1.Object) []string {
	var names []string
	for _, m := range live.GetManagedFields() {
		var fields struct {
			Webhooks map[string]json.RawMessage `json:"f:webhooks"`
		}
		if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for key := range fields.Webhooks {
			var item struct{ Name string }
			if of, is := strings.CutPrefix(key, "k:"); is && json.Unmarshal([]byte(of), &item) == nil {
				names = append(names, item.Name)
			}
		}
	}
	return names
}

// AsksPerson reports whether the plan holds something that a person can approve, or whether its pass may, because the pass before held
// prunes after its creates and updates.
func (p Plan) AsksPerson() bool {
	return p.Approval != nil || slices.ContainsFunc(p.Held, func(h inventory.Hold) bool { return h.Guard == string(Unfinished) })
}

// holdPrunes returns a part of the pass's plan in which prunes are held while something is undone, unless a person approved them.
// shown is the whole plan, with the steps of that part.
func (p Pass) holdPrunes(part, shown Plan) Plan {
	undone, done, uids := shown.Undone(p.Done), p.outcomes(), p.appliedUIDs()
	free := slices.Clone(part.Steps)
	part.Steps = slices.Clone(part.Steps)
	for i, s := range part.Steps {
		s = shown.freed(s, undone)
		if wanted, twice := uids[s.UID]; twice && s.Action == Prune {
			s, part.Stale = s.keptAs(wanted), true
		} else if why := s.WaitsFor(undone); !why.None() && s.Err == nil && !p.follows(s) {
			s = s.ruled(Ruling{Guard: Unfinished, Severity: Block, Reason: why}, nil).free()
		} else if why := s.NotEmpty(done); !why.None() && s.Err == nil {
			s = s.failed(why)
		}
		part.Steps[i] = s
	}
	all := shown.replaced(part, p.following(part))
	all.Approval, all.Spent = nil, nil
	var lifted Lifting
	if all.AskAgain != nil {
		lifted = all.AskAgain(&all)
	}
	approved := func(s Step) bool { return s.isUnfinished() && lifted.Covers(s.ask(Ruling{Guard: Unfinished})) }
	part.Approval, part.Spent = all.Approval, slices.Concat(part.Spent, all.Spent)
	for i, s := range part.Steps {
		if approved(s) && !slices.ContainsFunc(part.Steps, func(o Step) bool { return o.isUnfinished() && !approved(o) && isInside(o.ID, s.ID) }) {
			part.Steps[i] = free[i].past(append(free[i].Lifted, s.holds()...))
		}
	}
	return part
}

// freed returns a step as a prune if only the guard Unfinished held it, because of what was known before the pass sent anything, and
// the API server has named it in a refusal since then. What depends on the object keeps it.
func (p Plan) freed(s Step, undone []Undone) Step {
	if s.isUnfinished() && len(s.Also) == 0 && len(p.Dependants[s.ID]) == 0 && slices.ContainsFunc(undone, func(u Undone) bool { return u.RefusedBy.isIn(s) }) {
		return s.unheld()
	}
	return s
}

// isUnfinished reports whether the guard Unfinished holds a prune.
func (s Step) isUnfinished() bool { return s.Action == Hold && s.Guard == Unfinished }

// isInside reports whether an object is in a namespace.
func isInside(id, namespace manifest.ID) bool {
	return namespace.Group == "" && namespace.Kind == "Namespace" && id.Namespace == namespace.Name
}

// NotEmpty returns why a namespace is not pruned: an object in it could not be pruned. It returns no reason for other steps.
func (s Step) NotEmpty(done []Outcome) Reason {
	for _, o := range done {
		if s.Action == Prune && o.Action == Prune && o.Err != nil && isInside(o.ID, s.ID) {
			return NamespaceNotEmpty.With(o.ID)
		}
	}
	return Reason{}
}
