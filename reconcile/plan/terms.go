package plan

import (
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Terms configures which objects and fields a sync takes from other tools. The zero value is the default.
type Terms struct {
	Adoption   Adoption
	Take       bool // fields that another manager applies are taken from it
	Clear      bool // fields that the tools left behind that applied an object before are removed
	Ignore     diff.Ignores
	Deactivate bool // deactivate definitions without a policy and without objects

	NoSecrets bool // references must not name Secrets

	Release     []string // identities of objects that leave the sync without being deleted, once the commit does not declare them
	Trailers    Trailers // which approvals in the message of a commit count
	TakeOver    string   // the source from which the inventory is taken over, or TakeAny; "" is none
	FastForward bool     // a commit that does not descend from the one that was applied last changes nothing until a person approves
}

// Trailers is which approvals in the message of a commit count. The author of a change writes the message, so none count
// unless the sync allows it.
type Trailers string

// The values of Trailers.
const (
	TrailersNever  Trailers = ""       // none
	TrailersSigned Trailers = "Signed" // of a commit that a listed key signed, in its last paragraph
	TrailersAny    Trailers = "Any"    // of every commit that a pass applies
)

// An Adoption is whether objects are taken over that are there already.
type Adoption string

// The adoptions.
const (
	AdoptUnowned Adoption = ""       // objects without an owner
	AdoptNone    Adoption = "Refuse" // nothing
	AdoptAll     Adoption = "Adopt"  // also what another tool owns; never what Crossplane does
)

// The codes of objects that a sync does not take over.
const (
	NotAdopted  Code = "NotAdopted"  // the object was there before, and the sync adopts none
	MadeByOther Code = "MadeByOther" // the owner, from which nothing is taken over
	OwnedBySync Code = "OwnedBySync" // another sync, whose inventory holds it
	OwnedByTool Code = "OwnedByTool" // another tool

	StillReconciled   Code = "StillReconciled"   // the object of another tool that reconciles the object now
	ReconcilerUnknown Code = "ReconcilerUnknown" // the owner, and why it cannot be read whether it reconciles the object
)

// Refused returns why a live object must not be written: another owner has it, or the sync does not adopt it. It
// returns no reason if the object may be written.
func (o Observed) Refused(id manifest.ID, live metav1.Object) Reason {
	claim := o.ClaimOn(id, live)
	switch {
	case o.Looks, o.Offline:
		return Reason{} // nothing is written, regardless of the owner; an object applied from a commit counts as ours
	case claim.By == "" && (o.Terms.Adoption != AdoptNone || o.Mine(id, live)):
		return Reason{}
	case claim.By == "":
		return NotAdopted.With()
	case claim.Final:
		return MadeByOther.With(claim.By)
	case claim.Sync != "" && o.Terms.Adoption != AdoptNone && ownership.MovesTo(live, o.Inventory.Sync):
		return Reason{} // it announced that it moves to this sync
	case claim.Sync != "" && o.Terms.Adoption != AdoptNone && o.leftBy(claim, id):
		return Reason{} // the other sync of the process leaves it to this one
	case o.MovedTo(id) != "":
		return Reason{} // which a guard retains
	case claim.Sync != "" && o.Terms.Adoption == AdoptAll && !o.Left[id]:
		return OwnedBySync.With(claim.By)
	case o.Terms.Adoption != AdoptAll:
		return OwnedByTool.With(claim.By)
	case !o.Mine(id, live):
		return o.Reconciled[id]
	}
	return Reason{}
}
