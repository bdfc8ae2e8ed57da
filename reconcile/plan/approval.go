package plan

import (
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/reason"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Approval lets exactly the held steps of its digest pass. A person gives it. The digest of the same steps is the same in a
// preview and in every cluster.
type Approval struct {
	Digest string      `json:"digest"`
	Steps  int         `json:"steps"`
	Guards []GuardName `json:"guards"`         // the guards that hold the steps
	Each   []string    `json:"each,omitempty"` // in a comparison: the digests that Digest covers, sorted
	UpTo   int         `json:"upTo,omitempty"` // how many definitions become active, and how many custom resources break

	Claims []approval.Ask `json:"claims,omitempty"` // what a person is asked
}

// Line returns what a person writes to approve everything: the digest, and the amount if it has one.
func (a Approval) Line() string { return approval.Line(a.Digest, a.UpTo) }

// Covers reports whether an approval lets a held step pass.
func (a *Approval) Covers(s Step) bool {
	return a != nil && s.Action == Hold && !slices.ContainsFunc(s.ClaimsHeld(), func(c approval.Ask) bool { return !slices.Contains(a.Claims, c) })
}

// Names returns the names of the guards as text.
func (a Approval) Names() []string {
	names := make([]string, len(a.Guards))
	for i, name := range a.Guards {
		names[i] = string(name)
	}
	return names
}

// Claim returns what a person is asked if a guard holds the step for a cause.
func (s Step) Claim(guard GuardName, cause approval.Cause) approval.Claim {
	c := approval.Claim{Guard: string(guard), Cause: cause, Action: string(s.Change().Action), Of: s.ID, Wants: s.Wants}
	if s.Deactivates { // the same in each phase of a deactivation
		c.Of = CRD(s.ID.Name)
	}
	if len(s.Drops) > 0 {
		c.Action, c.Wants = string(LeftoverFields), ""
		for _, h := range s.Drops {
			c.Wants += "\x00" + strings.Join(append([]string{h.Manager}, h.Fields...), "\x00")
		}
	}
	return c
}

// ClaimOnContent returns the claim on what the step writes of the commit, regardless of leftover fields that it removes.
func (s Step) ClaimOnContent() approval.Claim {
	s.Drops = nil
	return s.Claim("", "")
}

// Ask returns what a person is asked about a ruling on the step.
func (s Step) Ask(r Ruling) approval.Ask {
	return approval.Ask{Claim: s.Claim(r.Guard, r.Cause), Amount: r.Amount}
}

// ClaimsHeld returns what a person is asked about a held step, without duplicates.
func (s Step) ClaimsHeld() []approval.Ask { return s.asksOf(s.Holds()) }

// Claims returns what a person is asked about a held step, or has approved so that it passed.
func (s Step) Claims() []approval.Ask {
	if s.Action == Hold {
		return s.ClaimsHeld()
	}
	return s.asksOf(s.Lifted)
}

func (s Step) asksOf(rulings []Ruling) []approval.Ask {
	var all []approval.Ask
	for _, r := range rulings {
		a := s.Ask(r)
		if i := slices.IndexFunc(all, func(b approval.Ask) bool { return a.Claim == b.Claim }); i >= 0 {
			all[i].Amount = all[i].Amount.Plus(a.Amount)
			continue
		}
		all = append(all, a)
	}
	return all
}

// A Lifting holds, by the keys of claims that a person has approved, how far each may grow.
type Lifting map[string]approval.Amount

// Covers reports whether a person has approved an ask.
func (l Lifting) Covers(a approval.Ask) bool {
	if len(l) == 0 {
		return false
	}
	limit, has := l[a.Key()]
	return has && a.Amount.Within(limit)
}

// Add adds what a person has approved.
func (l Lifting) Add(asks ...approval.Ask) {
	for _, a := range asks {
		l[a.Key()] = a.Amount
	}
}

// Some reports whether a claim of a guard is approved.
func (l Lifting) Some(guard GuardName) bool {
	for key := range l {
		if strings.HasPrefix(key, string(guard)+":") {
			return true
		}
	}
	return false
}

// AsksFor returns the step that the plan asks about: a prune, or the held update in its place if a guard that decides before it keeps
// the prune from being made.
func (p Plan) AsksFor(s Step, first map[GuardName]bool) Step {
	update := p.Instead[s.ID]
	if update.Action != Hold || s.Action == Prune || s.HeldByAny(first) {
		return s
	}
	return update
}

// Approval returns the approval that lets only this held step pass.
func (s Step) Approval() Approval { return ApprovalOf(s.ClaimsHeld()) }

// ClaimAs returns what a person would be asked if a guard held the step's action would.
func (s Step) ClaimAs(guard GuardName, cause approval.Cause, would Action) approval.Ask {
	s.Action, s.Would = Hold, would
	return approval.Ask{Claim: s.Claim(guard, cause)}
}

// ApprovalOf returns the approval of claims. Their order does not matter.
func ApprovalOf(asks []approval.Ask) Approval {
	a, changes := Approval{Digest: approval.Whole(asks), UpTo: approval.Total(asks), Claims: asks}, map[string]bool{}
	for _, c := range asks {
		a.Guards = append(a.Guards, GuardName(c.Guard))
		changes[approval.ChangeOf(c.Key())] = true
	}
	slices.Sort(a.Guards)
	a.Guards, a.Steps = slices.Compact(a.Guards), len(changes)
	return a
}

// HoldKey identifies a held step: its guard, action and object, and the wanted digest.
func (s Step) HoldKey() string {
	return inventory.Hash([]byte(s.Claim(s.Guard, s.Judged.Cause).String()))[:11]
}

// Past returns the step with the rulings that approvals lifted, if it is carried out because of that.
func (s Step) Past(lifted []Ruling) Step {
	if len(lifted) == 0 || s.Action == Hold || s.Action == Keep {
		return s
	}
	s.Approved, s.Lifted, s.Reason = true, lifted, reason.Reason{}
	for _, r := range lifted {
		s.Reason = reason.And(s.Reason, reason.Approved.With(string(r.Guard), r.Reason))
	}
	return s
}

// Approvals are the approvals that a plan was made with, and those that it uses.
type Approvals struct {
	Given         approval.Given    // the approvals in the places that were read
	GrantedBefore []inventory.Grant // the grants in the inventory
	Spent         []inventory.Grant // the grants by this plan, of approvals that were not used before
	Now           metav1.Time
	Rebuilt       bool // the inventory with the grants was lost and has not been stored again
}
