package draft

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OnlyObserved is the guard for observe-only objects.
const OnlyObserved plan.GuardName = "observed"

// observe returns the step for an observe-only object if it exists.
func observe(s plan.Step, a facts.Asked, seen facts.Observed, live metav1.Object) plan.Step {
	entry := seen.Inventory.Entries[a.ID]
	trial, tried := seen.Trials[a.ID]
	s.Action = plan.Keep
	switch {
	case trial.After != nil || trial.Err != nil:
		s.Action, s.Cause = plan.Update, plan.Drift // a guard only reports it
		s.Live, s.After, s.Takes, s.Err = trial.Live, trial.After, trial.TakenBy, trial.Err
		if entry.UID != live.GetUID() || entry.Policy != a.Policy {
			s.Renew = inventory.Entry{UID: live.GetUID(), Policy: a.Policy, Proof: proof(seen, a.Policy, live), Strategy: "Apply", Actuation: "Skipped", Reconcile: "Unknown"}
			s.Renew = s.Renew.Following(entry)
		}
	case tried:
		now := inventory.Entry{UID: live.GetUID(), Digest: s.Digest, Mark: inventory.Mark(live), Policy: a.Policy, Proof: proof(seen, a.Policy, live), Strategy: "Apply", Actuation: "Skipped", Reconcile: "Succeeded"}
		now = now.Following(entry)
		if now != entry {
			s.Renew = now
		}
	}
	return s
}

// observeCommit returns the step for an observe-only object in a comparison of commits, which do not show whether it exists.
func observeCommit(s plan.Step, a facts.Asked, seen facts.Live) plan.Step {
	s.Action = plan.Keep
	if _, tried := seen.Trials[a.ID]; tried || seen.Objects[a.ID] == nil {
		s.Guard, s.Reason = OnlyObserved, reason.OnlyLookedAt.With(string(a.Policy))
	}
	return s
}

// notThere returns the effect that an observed object, which does not exist yet, will appear.
func notThere(a facts.Asked) plan.Effect {
	for _, r := range a.Resolved.References {
		if m, ok := a.Resolved.Missing[r.Source]; ok && a.Resolved.Nameless {
			return plan.Effect{Kind: plan.Appear, On: a.ID, State: plan.Pending, Reason: reason.NameNotThere.With(m.Field, a.Origin)}
		}
	}
	return plan.Effect{Kind: plan.Appear, On: a.ID, State: plan.Pending, Reason: reason.NotMade.With(string(a.Policy), a.Origin)}
}

// proof returns a value for an object that can only be computed with the key.
func proof(o facts.Observed, p inventory.ManagementPolicy, live metav1.Object) string {
	if !p.NeedsProof() || len(o.Key) == 0 {
		return ""
	}
	keyed := hmac.New(sha256.New, o.Key)
	fmt.Fprintf(keyed, "%q %q", o.Inventory.Sync.Key(), live.GetUID()) // a UID is unique
	return inventory.Hash(keyed.Sum(nil))
}

// IsObserved reports whether a live object is the one that the inventory records as deletable, although it carries no mark of ours. The
// proof covers the UID of the object.
func IsObserved(o facts.Observed, id manifest.ID, live metav1.Object) bool {
	e := o.Inventory.Entries[id]
	proof := proof(o, e.Policy, live)
	return proof != "" && hmac.Equal([]byte(proof), []byte(e.Proof))
}
