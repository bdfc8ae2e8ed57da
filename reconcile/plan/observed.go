package plan

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Observed holds the objects in a place that the commit wants or the sync owns. The place is a cluster, or the base
// commit of a preview.
type Observed struct {
	Want         render.Desired // the commit with what its references copy, and with what protects dependencies; set by Ask
	Asked        []Asked        // what is asked for; set by Ask
	Inventory    inventory.Inventory
	Objects      map[manifest.ID]*metav1.PartialObjectMetadata // existing objects that are wanted or owned
	Due          map[manifest.ID]bool                          // objects to try, however they look
	Trials       map[manifest.ID]Trial                         // trials of objects that may have changed; an object without one is unchanged
	Kinds        map[schema.GroupKind]Kind
	Instances    map[schema.GroupKind]bool // kinds whose objects stand for external resources, according to the base of a comparison
	Answers      map[Question]Answer
	Effects      []Effect // what packages of the commit have Crossplane install; of a cluster, only what breaks something
	Upstream     Upstream
	Terms        Terms                                         // of the sync
	Copies       []manifest.ID                                 // carry our marks, are neither wanted nor in the inventory, and our field manager did not mark them
	Hidden       map[schema.GroupKind]error                    // kinds of owned objects that are not served although objects may exist, and why
	Unreadable   map[schema.GroupKind]error                    // kinds whose objects could not be read, and why
	Left         map[manifest.ID]bool                          // what bears the mark of another sync whose inventory does not hold it
	Reconciled   map[manifest.ID]Reason                        // what another tool still reconciles, and by what
	Key          []byte                                        // of the digests of Secrets; nil where there are none
	Fights       []Fight                                       // corrections that another writer undoes again and again, as the loop remembers them
	Approvals    inventory.Approvals                           // digests that a person gave, by the places that were read; Compute adds those in Git
	InForce      []render.Approval                             // of a comparison: the approvals of the branch into which the commit goes
	OnForge      map[inventory.ApprovalPlace][]render.Approval // of the pull requests of the commit; nil where the forge was not asked
	Now          metav1.Time                                   // decides which approvals in Git have expired; they do not count if it is zero
	Natural      render.Owner                                  // the owner of CRDs according to the cluster; "" if it was not read
	Offline      bool                                          // a commit and no cluster: every kind counts as served, and questions stay open
	Base         *render.Desired                               // of a comparison: the commit that stands for the cluster
	Bumps        []Bump                                        // from the base of a comparison
	Counts       bool                                          // of a commit: a cluster answers questions all the same
	Ends         Ending                                        // of a sync that is to own nothing any more
	Looks        bool                                          // a sync that only looks: its inventory is what it saw as wanted, its trials are comparisons
	Space        string                                        // for namespaced objects without a namespace
	Sources      map[manifest.ID]ReferenceSource               // of references
	Written      map[manifest.ID]manifest.ID                   // how the commit writes what is another identity in the cluster
	Dependencies map[manifest.ID]Dependency                    // that were looked at

	CopiedMoves []StorageMove      // of copies of packages, from the base of a comparison
	Notes       []manifest.Finding // what the observer found worth knowing
	Peers       []Peer             // the other syncs of the process

	commit    *render.Desired // the commit as it was rendered; nil before Ask
	rewritten Reason          // why the commit may not follow the last one; set by Compute
}

// A Trial is the result of a dry-run apply of the wanted object, or of a comparison with it.
type Trial struct {
	Sent  *unstructured.Unstructured // what was tried, where that is not all of the object
	Live  *unstructured.Unstructured // as it is; nil where nothing would change
	After *unstructured.Unstructured // as it would be; nil where nothing would change
	Whole FullDefinition             // After with its schemas, where it is without; nil where it has them
	Err   error                      // why the API server refuses it: a conflict, a validation error

	Migrates []string // versions that are not served and that managed fields name: After differs in those only

	Adopts ownership.Takeover // what is taken over first from the tools that applied the object

	// TakenBy lists the managers that lose fields: manual edits of fields that we applied before and, depending on the
	// terms of the sync, fields that other tools apply. After is the object without their values. In a comparison, they
	// are the managers that edited fields of other tools.
	TakenBy []diff.Taken

	// For a comparison whose differences are not all due to TakenBy.
	Stale   bool // a field differs that belongs to the tool that applies the object
	Missing bool // a field is missing, and it is not known since when
}

// TrialOf returns a comparison as a trial, without a request to the API server.
func TrialOf(c diff.Comparison) Trial {
	return Trial{Live: c.Live, After: c.After, TakenBy: c.TakenBy, Stale: c.Stale, Missing: c.Missing}
}

// Doubtful returns the objects whose metadata does not prove that they are as wanted. It includes missing objects only
// if creates is set, so that the API server checks them.
func (o Observed) Doubtful(creates bool) []Asked {
	var doubtful []Asked
	for _, a := range o.Asked {
		live, exists := o.Objects[a.ID]
		entry := o.Inventory.Entries[a.ID]
		switch {
		case a.Paused, len(a.resolved.missing) > 0, o.Unreadable[a.ID.GroupKind()] != nil:
		case o.isCatalogue(a), o.gaveAway(a):
		case !exists:
			if _, served := o.Kinds[a.ID.GroupKind()]; creates && served && !a.Policy.Observes() {
				doubtful = append(doubtful, a)
			}
		case !o.Refused(a.ID, live).None() && !a.Policy.Observes() && !o.mayBeLeft(a.ID, live):
		case entry.UID == live.GetUID() && entry.Digest == o.Digest(a.Object) && entry.Mark == inventory.Mark(live) && !o.Due[a.ID] && !entry.Releasing:
		default:
			doubtful = append(doubtful, a)
		}
	}
	return doubtful
}

// Digest returns the digest of the request for an object.
func (o Observed) Digest(of render.Object) string {
	return o.plainDigest(of) + o.Terms.Ignore.Suffix(of.ID)
}

// plainDigest is the same, whatever is ignored of the object.
func (o Observed) plainDigest(of render.Object) string {
	d := o.Inventory.Sync.Digest(of)
	if len(o.Key) == 0 || !of.ID.IsSecret() && !of.Secret {
		return d
	}
	keyed := hmac.New(sha256.New, o.Key)
	keyed.Write([]byte(d))
	return inventory.Hash(keyed.Sum(nil))
}

// AsBefore reports whether exactly this was applied before, whatever was ignored of it then.
func (o Observed) AsBefore(of render.Object) bool {
	before, _, _ := strings.Cut(o.Inventory.Entries[of.ID].Digest, diff.SuffixMark)
	return before == o.plainDigest(of)
}

// A Kind is one that the API server serves.
type Kind struct {
	Version    string // preferred
	Resource   string // plural
	Namespaced bool
	Categories []string
}

// Ask is what a guard needs to know before it can answer.
type Ask string

const (
	// Dependents asks how many live objects go when the object goes: custom
	// resources of a CRD, usages of a ProviderConfig, and so on.
	Dependents Ask = "dependents"
	// Inside asks how many objects a namespace holds that are not of this sync.
	Inside Ask = "inside"
	// Protectors asks how many of Crossplane's Usages name an object.
	Protectors Ask = "protectors"
	// Present asks whether an object is there.
	Present Ask = "present"
	// Stored asks in which versions objects of a CRD are stored: the example names them all.
	Stored Ask = "stored"
	// Departs asks of an MRD that goes whether its CRD would go with it (then the count is 1), whether the MRD is
	// among the owners of the CRD (then the CRD is one of These), and for the reason of its condition Established (the
	// example).
	Departs Ask = "departs"
	// Fits asks how many objects of a CRD, or of the CRDs of an XRD, lose a value or are refused once the
	// definition is another one.
	Fits Ask = "fits"
	// Controls asks how many CRDs and MRDs of a package have a controller that is not the active revision of the package.
	Controls Ask = "controls"
	// Leftovers asks what an object would be without the fields that the tools left behind that applied it before.
	Leftovers Ask = "leftovers"
)

// A Question is a count that a guard needs. Only the cluster can answer.
type Question struct {
	Ask   Ask
	Of    manifest.ID
	After FullDefinition // of Fits: the CRD, or the MRD or XRD that makes it, as it will be
}

// The codes of questions that were not answered.
const (
	CountTooLong   Code = "CountTooLong"   // after which time counting was given up
	CountForbidden Code = "CountForbidden" // the error of an API server that forbids to count
)

// An Answer to a Question.
type Answer struct {
	Count   int64
	Example string // one of them, for people: "Bucket team-a/logs"
	Unknown Reason // why it could not be counted; none where it was

	These   []manifest.ID // as many of them as are known by name
	UID     types.UID     // of Departs: of the CRD, if that is of Crossplane and may stay
	Misfits []Reason      // of Fits: what they lose or are refused

	Live, After *unstructured.Unstructured // of Leftovers: the object as it is, and without them
}

// And returns the answer for two kinds together. A known obstacle of one counts, even if the other is not known.
func (a Answer) And(b Answer) Answer {
	both := Answer{
		Count: a.Count + b.Count, Example: cmp.Or(a.Example, b.Example),
		These: slices.Concat(a.These, b.These), Misfits: slices.Concat(a.Misfits, b.Misfits),
	}
	if both.Count == 0 {
		both.Unknown = a.Unknown.Or(b.Unknown)
	}
	return both
}
