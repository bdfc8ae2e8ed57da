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

// Observed is what a place holds of what the commit wants and of what we own. The
// place is a cluster, or the base commit of a preview.
type Observed struct {
	Want         render.Desired // the commit with what its references copy, and with what protects dependencies; set by Ask
	Asked        []Asked        // what is asked for; set by Ask
	Inventory    inventory.Inventory
	Objects      map[manifest.ID]*metav1.PartialObjectMetadata // what exists of what is wanted or owned
	Due          map[manifest.ID]bool                          // what is to be tried, however it looks
	Trials       map[manifest.ID]Trial                         // of what may have moved; what has none is as we left it
	Kinds        map[schema.GroupKind]Kind
	Instances    map[schema.GroupKind]bool // kinds of which the base of a comparison says that they reach beyond a cluster
	Answers      map[Question]Answer
	Effects      []Effect // what packages of the commit have Crossplane install; of a cluster, only what breaks something
	Upstream     Upstream
	Terms        Terms                           // of the sync
	Copies       []manifest.ID                   // carry our marks, are neither wanted nor in the inventory, and our field manager did not mark them
	Hidden       map[schema.GroupKind]error      // kinds of owned objects that are not served although objects may exist, and why
	Unreadable   map[schema.GroupKind]error      // kinds of which the objects could not be read, and why
	Left         map[manifest.ID]bool            // what bears the mark of another sync whose inventory does not hold it
	Reconciled   map[manifest.ID]Reason          // what another tool still reconciles, and by what
	Key          []byte                          // of the digests of Secrets; nil where there are none
	Fights       []Fight                         // what somebody undoes again and again, as whoever makes the passes remembers
	Approvals    inventory.Approvals             // digests that a person gave, by the places that were read
	Natural      render.Owner                    // who makes the CRDs here, as far as the cluster can tell; "" where nobody looked
	Offline      bool                            // a commit and no cluster: every kind counts as served, and questions stay open
	Base         *render.Desired                 // of a comparison: the commit that stands for the cluster
	Bumps        []Bump                          // from the base of a comparison
	Counts       bool                            // of a commit: a cluster answers questions all the same
	Ends         Ending                          // of a sync that is to own nothing any more
	Looks        bool                            // a sync that only looks: its inventory is what it saw as wanted, its trials are comparisons
	Space        string                          // of what is in a namespace and names none
	Sources      map[manifest.ID]ReferenceSource // of references
	Written      map[manifest.ID]manifest.ID     // how the commit writes what is another identity in the cluster
	Dependencies map[manifest.ID]Dependency      // that were looked at

	CopiedMoves []StorageMove      // of copies of packages, from the base of a comparison
	Notes       []manifest.Finding // what the observer found worth knowing

	commit *render.Desired // the commit as it was rendered; nil before Ask
}

// A Trial is what a dry-run apply of the wanted object came to, or a comparison with it.
type Trial struct {
	Sent  *unstructured.Unstructured // what was tried, where that is not all of the object
	Live  *unstructured.Unstructured // as it is; nil where nothing would change
	After *unstructured.Unstructured // as it would be; nil where nothing would change
	Whole FullDefinition             // After with its schemas, where it is without; nil where it has them
	Err   error                      // why the API server refuses it: a conflict, a validation error

	Migrates []string // versions that are not served and that managed fields name: After differs in those only

	Adopts ownership.Takeover // what is taken over first from the tools that applied the object

	// TakenBy are the managers of fields that have to be taken from them: hand edits of
	// what we applied before and, on the terms of the sync, what others apply. After is
	// what taking them makes. Of a comparison they are those who edited what others apply.
	TakenBy []diff.Taken

	// Of a comparison, where it is not all due to those of TakenBy.
	Stale   bool // something differs that whoever applies the object holds
	Missing bool // something is not there, and nobody knows since when
}

// TrialOf returns the trial that a comparison stands for, where nobody asks the API server.
func TrialOf(c diff.Comparison) Trial {
	return Trial{Live: c.Live, After: c.After, TakenBy: c.TakenBy, Stale: c.Stale, Missing: c.Missing}
}

// Doubtful returns what is asked for and of which metadata alone cannot tell that it is as wanted. What does not
// exist yet is part of it only if creates is set: that makes the API server check it.
func (o Observed) Doubtful(creates bool) []Asked {
	var doubtful []Asked
	for _, a := range o.Asked {
		live, exists := o.Objects[a.ID]
		entry := o.Inventory.Entries[a.ID]
		switch {
		case a.Paused, len(a.resolved.missing) > 0, o.Unreadable[a.ID.GroupKind()] != nil:
		case o.isCatalogue(a):
		case !exists:
			if _, served := o.Kinds[a.ID.GroupKind()]; creates && served && !a.Policy.Observes() {
				doubtful = append(doubtful, a)
			}
		case !o.Refused(a.ID, live).None() && !a.Policy.Observes():
		case entry.UID == live.GetUID() && entry.Digest == o.Digest(a.Object) && entry.Mark == inventory.Mark(live) && !o.Due[a.ID]:
		default:
			doubtful = append(doubtful, a)
		}
	}
	return doubtful
}

// Digest is that of what is applied for an object.
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

// And is the answer for two kinds that were asked about together. What is in the way of one is in the way,
// whatever is not known of the other.
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
