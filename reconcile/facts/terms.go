package facts

import (
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Terms configures which objects and fields a sync takes from other tools. The zero value is the default.
type Terms struct {
	Adoption   Adoption
	Take       bool // take fields that another manager applies
	Clear      bool // remove leftovers of the tools that applied an object before
	Ignore     diff.Ignores
	Deactivate bool // deactivate definitions without a policy and without objects

	NoSecrets bool // references must not name Secrets
	// Reads reports whether references may read an object. The namespace is that in the cluster, "" if the object is
	// cluster-scoped; known reports whether the scope is known. nil allows every object.
	Reads func(id manifest.ID, namespace string, known bool) bool

	Release     []string // IDs of objects to release once the commit does not declare them any more
	Trailers    bool     // the Sync says which approvals in commit messages count, which has no effect any more
	Object      string   // the UID of the Sync object; "" if the sync is none
	TakeOver    string   // the source from which to take over the inventory, as in a SourceError; "" for none
	FastForward bool     // a commit that does not descend from the last applied one changes nothing until a person approves
}

// An Adoption is which existing objects a sync takes over.
type Adoption string

// The adoptions.
const (
	AdoptUnowned Adoption = ""       // objects without an owner
	AdoptNone    Adoption = "Refuse" // nothing
	AdoptAll     Adoption = "Adopt"  // also objects of other tools, but never of Crossplane
)

// Refused returns why a live object must not be written: it has another owner, or the sync does not adopt it. It returns no reason
// if the object may be written.
func (o Observed) Refused(id manifest.ID, live metav1.Object) reason.Reason {
	claim := o.ClaimOn(id, live)
	switch {
	case claim.By == "" && (o.Terms.Adoption != AdoptNone || o.Mine(id, live)):
		return reason.Reason{}
	case claim.By == "":
		return reason.NotAdopted.With()
	case claim.Final:
		return reason.MadeByOther.With(claim.By)
	case claim.Sync != "" && o.Terms.Adoption != AdoptNone && ownership.MovesTo(live, o.Inventory.Sync):
		return reason.Reason{} // its owner announced that it moves to this sync
	case claim.Sync != "" && o.Terms.Adoption != AdoptNone && o.leftBy(claim, id):
		return reason.Reason{} // another sync of the process gives it up to this one
	case o.MovedTo(id) != "":
		return reason.Reason{} // a guard retains it
	case claim.Sync != "" && o.Terms.Adoption == AdoptAll && !o.Left[id]:
		return reason.OwnedBySync.With(claim.By)
	case o.Terms.Adoption != AdoptAll:
		return reason.OwnedByTool.With(claim.By)
	case !o.Mine(id, live):
		return o.Reconciled[id]
	}
	return reason.Reason{}
}
