package plan

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The codes of objects that Headgate only looks at.
const (
	OnlyLookedAt Code = "OnlyLookedAt" // the management policy
	NameNotThere Code = "NameNotThere" // the field for the name of the object, which does not exist, and the origin of the reference
	NotMade      Code = "NotMade"      // the management policy of an object that does not exist, and its origin
)

// OnlyObserved is the guard for observe-only objects.
const OnlyObserved GuardName = "observed"

// observe returns the step for an observe-only object if it exists.
func (s Step) observe(a Asked, seen Observed, live metav1.Object) Step {
	entry := seen.Inventory.Entries[a.ID]
	trial, tried := seen.Trials[a.ID]
	s.Action = Keep
	switch {
	case trial.After != nil || trial.Err != nil:
		s.Action, s.Cause = Update, Drift // a guard only reports it
		s.Live, s.After, s.Takes, s.Err = trial.Live, trial.After, trial.TakenBy, trial.Err
		if entry.UID != live.GetUID() || entry.Policy != a.Policy {
			s.Renew = inventory.Entry{UID: live.GetUID(), Policy: a.Policy, Proof: seen.proof(a.Policy, live), Strategy: "Apply", Actuation: "Skipped", Reconcile: "Unknown"}
			s.Renew = s.Renew.Following(entry)
		}
	case tried:
		now := inventory.Entry{UID: live.GetUID(), Digest: s.Digest, Mark: inventory.Mark(live), Policy: a.Policy, Proof: seen.proof(a.Policy, live), Strategy: "Apply", Actuation: "Skipped", Reconcile: "Succeeded"}
		now = now.Following(entry)
		if now != entry {
			s.Renew = now
		}
	}
	return s
}

// observeCommit returns the step for an observe-only object in a comparison of commits, which do not show whether it exists.
func (s Step) observeCommit(a Asked, seen Observed) Step {
	s.Action = Keep
	if _, tried := seen.Trials[a.ID]; tried || seen.Objects[a.ID] == nil {
		s.Guard, s.Reason = OnlyObserved, OnlyLookedAt.With(string(a.Policy))
	}
	return s
}

// notThere returns the effect that an observed object, which does not exist yet, will appear.
func notThere(a Asked) Effect {
	for _, r := range a.resolved.references {
		if m, ok := a.resolved.missing[r.source]; ok && a.resolved.nameless {
			return Effect{Kind: Appear, On: a.ID, State: Pending, Reason: NameNotThere.With(m.field, a.Origin)}
		}
	}
	return Effect{Kind: Appear, On: a.ID, State: Pending, Reason: NotMade.With(string(a.Policy), a.Origin)}
}

// proof returns a value for an object that can only be computed with the key.
func (o Observed) proof(p inventory.ManagementPolicy, live metav1.Object) string {
	if !p.NeedsProof() || len(o.Key) == 0 {
		return ""
	}
	keyed := hmac.New(sha256.New, o.Key)
	fmt.Fprintf(keyed, "%q %q", o.Inventory.Sync.Key(), live.GetUID()) // a UID is unique
	return inventory.Hash(keyed.Sum(nil))
}

// IsObserved reports whether a live object is the one that the inventory records as deletable, although it carries no mark of ours.
func (o Observed) IsObserved(id manifest.ID, live metav1.Object) bool {
	e := o.Inventory.Entries[id]
	proof := o.proof(e.Policy, live)
	return e.UID != "" && e.UID == live.GetUID() && proof != "" && hmac.Equal([]byte(proof), []byte(e.Proof))
}
