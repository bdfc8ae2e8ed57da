package plan

import (
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"
)

// A Memory is what a plan adds to the record of the inventory.
type Memory struct {
	Record *inventory.Record // to store after the plan was carried out; nil leaves the stored one unchanged
	News   bool              // Record differs from the stored one
	Known  map[string]bool   // names of in-tree packages' definitions, and of existing CRDs
	Lost   []LostPackage     // packages of applied commits that are not packages in this one any more

	Behind     map[manifest.ID]inventory.Entry // entries of the CRDs that stay when their MRDs are deleted, by MRD
	Undeclared map[manifest.ID]bool            // owned objects that the commit does not declare; nil if the plan is not for a commit
	Partial    bool                            // the plan is for some entries of the inventory and not for a commit: owner and grants stay

	Applied   string // the commit that was applied last before this plan
	Forwards  bool   // a commit must descend from the last applied one
	Rewritten bool   // this commit does not, and no person has approved a change of it
	TakesOver bool   // another source replaces the recorded one

	Object string // the UID of the Sync object; "" if the sync is none
}
