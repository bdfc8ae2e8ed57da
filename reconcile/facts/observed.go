// Package facts has what is known before a plan is made: what exists in the observed place, what is owned, what the sync allows, and
// what follows from each of these alone.
package facts

import (
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Observed is what was observed in one place: a cluster, or the base commit of a preview. It holds the objects that the commit
// wants or the sync owns.
type Observed struct {
	Wanted
	Ground
	Given
	Live
	Comparison
	Standing

	Answers  question.Answers
	Upstream Upstream
	Asks     *[]question.Any // where Compute collects questions; nil if nothing is asked
}

// Wanted is the commit, as Ask returns it.
type Wanted struct {
	Want   render.Desired  // the commit with resolved references, and with objects that protect dependencies
	Asked  []Asked         // the objects that the commit asks for
	Commit *render.Desired // the commit as rendered; nil before Ask
}

// Ground is what has to be known of a place before anything can be asked about it.
type Ground struct {
	Inventory  inventory.Inventory
	Kinds      map[schema.GroupKind]plan.Kind
	Hidden     map[schema.GroupKind]error  // kinds of owned objects that are not served although objects may exist, and why
	Unreadable map[schema.GroupKind]error  // kinds whose objects could not be read, and why
	Denied     map[manifest.ID]error       // objects that may not be read although others of their kind were, and why
	Scope      render.Scope                // the scopes of kinds; nil if only Kinds shows them
	Space      string                      // for namespaced objects without a namespace
	Stance     plan.Stance                 // what the pass may do in this place
	Written    map[manifest.ID]manifest.ID // the commit's spelling of IDs that differ in the cluster
	Natural    render.Owner                // the owner of CRDs according to the cluster; "" if it was not read
}

// Given is what users and the loop give to a pass.
type Given struct {
	Terms     Terms          // of the sync
	Key       []byte         // key for the digests of Secrets; nil if there is none
	Fights    []Fight        // corrections that another writer keeps undoing, from the loop
	Approvals approval.Given // the approvals in the places that were read; Compute adds those in Git and on the forge
	Now       metav1.Time    // to decide which approvals in Git have expired; if zero, none of them count
	Peers     []Peer         // the other syncs of the branch

	AppliedBefore *string // the last applied commit that the loop knew when it read the ref; nil if it knew none, or if a person named the commit
}

// Live is what was read of the objects of the place.
type Live struct {
	Objects    map[manifest.ID]*metav1.PartialObjectMetadata // existing objects that are wanted or owned
	Due        map[manifest.ID]bool                          // objects to dry-run even if they look unchanged
	Trials     map[manifest.ID]Trial                         // results for objects that may have changed; an object without one is unchanged
	Copies     []manifest.ID                                 // marked, but neither wanted nor owned, and marked by another field manager
	Left       map[manifest.ID]bool                          // objects with the mark of another sync whose inventory does not list them
	Reconciled map[manifest.ID]reason.Reason                 // objects that another tool still reconciles, and the reason
	Sources    map[manifest.ID]ReferenceSource               // of references
	Effects    []plan.Effect                                 // what Crossplane installs for packages of the commit; from a cluster, only effects that break something
	Notes      []manifest.Finding                            // findings of the observer
}

// A Comparison is what a comparison of two commits knows of its base.
type Comparison struct {
	Base        *render.Desired           // the commit in place of the cluster
	Bumps       []plan.Bump               // from the base
	Instances   map[schema.GroupKind]bool // kinds whose objects stand for external resources, according to the base
	InForce     []render.Approval         // the approvals in the target branch
	CopiedMoves []StorageMove             // storage moves in copies of packages
	Masks       map[manifest.ID]diff.Mask // values of Secrets that references of the base copied
}

// A Standing is how the commit stands to the one that was applied last; set by Compute.
type Standing struct {
	Rewritten reason.Reason // why the commit may not follow the applied one; no reason if it descends from that one, or if any may follow
	First     bool          // no pass has written to the cluster yet
	Lost      bool          // passes have written to it, but the inventory with the grants is gone
	InGit     InGit         // the approvals in Git
	TakesOver bool          // a person lets another source replace the recorded one
}

// InGit has the approvals in Git that count unless they have expired.
type InGit struct {
	Read bool // whether approvals in Git can count at all
	All  []render.Approval
}

// AskedByID returns the objects to apply.
func (o Wanted) AskedByID() map[manifest.ID]Asked {
	asked := make(map[manifest.ID]Asked, len(o.Asked))
	for _, a := range o.Asked {
		asked[a.ID] = a
	}
	return asked
}

// A Trial is the result of a dry-run apply of the wanted object, or of a comparison with it.
type Trial struct {
	Sent   *unstructured.Unstructured // what was sent, if not the complete object
	Live   *unstructured.Unstructured // the current object; nil if nothing would change, unless managed fields were lost
	After  *unstructured.Unstructured // the object after the apply; nil if nothing would change
	Whole  plan.FullDefinition        // After with its schemas, if After lacks them; otherwise nil
	Schema *plan.SchemaDifference     // of the complete definitions, if Live and After lack the equal parts of their schemas
	Err    error                      // why the API server refuses it, such as a conflict or a validation error

	Vendored bool // in a comparison of commits: a copy from a package, whose conversion may differ from the installed one

	Migrates []string // unserved versions in managed fields; then After differs only in these

	Adopts ownership.Takeover // fields to take over first from the tools that applied the object

	// TakenBy lists the managers that lose fields: manual edits of fields that we applied before and, depending on the terms of the
	// sync, fields that other tools apply. After is the object without their values. In a comparison, TakenBy lists the managers
	// that edited fields of other tools.
	TakenBy []diff.Taken

	// In a comparison, for differences that are not due to TakenBy.
	Stale   bool // a field differs that belongs to the tool that applies the object
	Missing bool // a field is missing, and it is not known since when
}

// TrialOf returns a comparison as a trial. It sends no request to the API server. Live and After have only the differing fields, which do
// not show what a schema breaks.
func TrialOf(c diff.Comparison) Trial {
	return Trial{Schema: &plan.SchemaDifference{}, Live: c.Live, After: c.After, TakenBy: c.TakenBy, Stale: c.Stale, Missing: c.Missing}
}

// Doubtful returns the objects whose metadata does not prove that they are as wanted. It includes missing objects only if creates
// is set, so that the API server checks them.
func (o Observed) Doubtful(creates bool) []Asked {
	var doubtful []Asked
	for _, a := range o.Asked {
		live, exists := o.Objects[a.ID]
		entry := o.Inventory.Entries[a.ID]
		switch {
		case a.Paused, len(a.Resolved.Missing) > 0, o.Unread(a.ID) != nil:
		case o.IsCatalogue(a), o.GaveAway(a):
		case !exists:
			if _, served := o.Kinds[a.ID.GroupKind()]; creates && served && !a.Policy.Observes() {
				doubtful = append(doubtful, a)
			}
		case !o.Refused(a.ID, live).None() && !a.Policy.Observes() && !o.mayBeLeft(a.ID, live):
		case entry.Shows(live, o.Digest(a.Object)) && !o.Due[a.ID] && !entry.Releasing:
		default:
			doubtful = append(doubtful, a)
		}
	}
	return doubtful
}

// Digest returns the digest of an object as it is sent.
func (o Observed) Digest(of render.Object) string {
	return o.plainDigest(of) + o.Terms.Ignore.Suffix(of.ID)
}

// plainDigest returns the digest regardless of ignored fields.
func (o Observed) plainDigest(of render.Object) string {
	d := o.Inventory.Sync.Digest(of)
	if len(o.Key) == 0 || !of.ID.IsSecret() && !of.Secret {
		return d
	}
	keyed := hmac.New(sha256.New, o.Key)
	keyed.Write([]byte(d))
	return inventory.Hash(keyed.Sum(nil))
}

// AsBefore reports whether exactly this object was applied before, regardless of the fields that were ignored.
func (o Observed) AsBefore(of render.Object) bool {
	before, _, _ := strings.Cut(o.Inventory.Entries[of.ID].Digest, diff.SuffixMark)
	return before == o.plainDigest(of)
}

// Known returns the answers of the observation. While Compute makes a plan, reading a question without an answer asks it.
func (o Observed) Known() question.Known { return question.Known{Answers: o.Answers, Asked: o.Asks} }

// Needed returns the questions that were asked so far.
func (o Observed) Needed() []question.Any {
	if o.Asks == nil {
		return nil
	}
	return slices.Clip(*o.Asks)
}

// AskOnly forgets the questions that were asked after these.
func (o Observed) AskOnly(these []question.Any) {
	if o.Asks != nil {
		*o.Asks = these
	}
}
