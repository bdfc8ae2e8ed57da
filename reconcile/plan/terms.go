package plan

import (
	"fmt"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Terms say what a sync takes from others, and what it leaves to them. The zero value is
// the default.
type Terms struct {
	Adoption   Adoption
	Take       bool // fields that another manager applies are taken from it
	Ignore     diff.Ignores
	Deactivate bool // definitions that nothing names and nobody uses are deactivated

	TakeOver string // the source from which the inventory is taken over, or TakeAny; "" is none
}

// An Adoption is whether objects are taken over that are there already.
type Adoption string

// The adoptions.
const (
	AdoptUnowned Adoption = ""       // what nobody owns
	AdoptNone    Adoption = "Refuse" // nothing
	AdoptAll     Adoption = "Adopt"  // also what another tool owns; never what Crossplane does
)

// Refused returns why a live object must not be written: another owner has it, or the sync does not adopt it. It
// returns "" if the object may be written.
func (o Observed) Refused(id manifest.ID, live metav1.Object) string {
	claim := o.ClaimOn(id, live)
	switch {
	case o.Looks, o.Offline:
		return "" // nothing is written, whoever owns it; and what was applied from a commit is ours
	case claim.By == "" && (o.Terms.Adoption != AdoptNone || o.Mine(id, live)):
		return ""
	case claim.By == "":
		return "it was there before, and this sync does not adopt (adoption: Refuse); delete it, or set adoption: AdoptIfUnowned"
	case claim.Final:
		return claim.By + " owns it; take it out of this repository"
	case claim.Sync != "" && o.Terms.Adoption == AdoptAll && !o.Left[id]:
		return fmt.Sprintf("%s owns it, and its inventory still holds it; take it out of there, or out of this repository", claim.By)
	case o.Terms.Adoption != AdoptAll:
		return fmt.Sprintf("%s owns it; take it out of there, or out of this repository, or set adoption: Adopt", claim.By)
	}
	return ""
}
