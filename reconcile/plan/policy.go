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
	NameNotThere Code = "NameNotThere" // the field that holds the name of the object and that is not there, and where the commit says so
	NotMade      Code = "NotMade"      // the management policy of an object that is not there, and where the commit declares it
)

// OnlyObserved is the guard for objects whose management policy only observes.
const OnlyObserved GuardName = "observed"

// observe is the decision on an object that is looked at and never written, if it is there.
func (s Step) observe(a Asked, seen Observed, live metav1.Object) Step {
	entry := seen.Inventory.Entries[a.ID]
	trial, tried := seen.Trials[a.ID]
	s.Action = Keep
	switch {
	case seen.Offline && !tried && seen.Objects[a.ID] != nil:
	case seen.Offline:
		s.Guard, s.Reason = OnlyObserved, OnlyLookedAt.With(string(a.Policy))
	case trial.After != nil || trial.Err != nil:
		s.Action, s.Cause = Update, Drift // which a guard only reports
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

// notThere returns an effect that no step causes: the creation of an observed object that does not exist.
func notThere(a Asked) Effect {
	for _, r := range a.resolved.references {
		if m, ok := a.resolved.missing[r.source]; ok && a.resolved.nameless {
			return Effect{Kind: Appear, On: a.ID, State: Pending, Reason: NameNotThere.With(m.field, a.Origin)}
		}
	}
	return Effect{Kind: Appear, On: a.ID, State: Pending, Reason: NotMade.With(string(a.Policy), a.Origin)}
}

// proof is what only who knows the key can write of an object.
func (o Observed) proof(p inventory.ManagementPolicy, live metav1.Object) string {
	if !p.NeedsProof() || len(o.Key) == 0 {
		return ""
	}
	keyed := hmac.New(sha256.New, o.Key)
	fmt.Fprintf(keyed, "%q %q", o.Inventory.Sync.Key(), live.GetUID()) // no two objects ever share a UID
	return inventory.Hash(keyed.Sum(nil))
}

// IsObserved reports whether a live object is the one that we recorded to be deletable though it
// bears no mark of ours.
func (o Observed) IsObserved(id manifest.ID, live metav1.Object) bool {
	e := o.Inventory.Entries[id]
	proof := o.proof(e.Policy, live)
	return e.UID != "" && e.UID == live.GetUID() && proof != "" && hmac.Equal([]byte(proof), []byte(e.Proof))
}
