package plan

import (
	"cmp"
	"errors"
	"slices"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Applies reports whether the step creates or updates its object.
func (s *Step) Applies() bool { return s != nil && s.Action.Writes() }

// Changes returns the fields that an update changes, or would change if drift were corrected, sorted by path. Values of Secrets are
// masked.
func (s Step) Changes() []diff.Change {
	if s.Action != Update && s.Cause != Drift {
		return nil
	}
	var changes []diff.Change
	if s.Live != nil && s.After != nil {
		hide := s.Hidden
		hide.Secret = s.ID.IsSecret()
		changes = diff.Changes(s.Live, s.After, hide)
	}
	if s.Activates && s.Action == Update {
		changes = append(changes, diff.Change{Path: "spec.state", From: `"Inactive"`, To: `"Active"`})
	}
	for i, c := range changes {
		changes[i].By = diff.HolderOf(s.Takes, c.Path)
	}
	slices.SortStableFunc(changes, func(a, b diff.Change) int { return cmp.Compare(a.Path, b.Path) })
	return changes
}

// An Action is what a step does.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Keep   Action = "keep"
	Prune  Action = "prune"
	Hold   Action = "hold"

	// Release removes our marks from an object, and leaves the object in the cluster.
	Release Action = "release"
)

// A Cause is why a step is necessary.
type Cause string

// The causes.
const (
	Commit Cause = "commit" // the commit asks for it
	Drift  Cause = "drift"  // another writer changed or deleted what we applied
	Retain Cause = "retain" // kept on purpose although the commit does not want it any more
)

// A Step is one decision of a plan: the action on one object, and its reason. Creates and updates use Write; prunes and releases
// use Removal. A keep or a hold does nothing, but has the part of the action that it replaces.
type Step struct {
	Action Action
	Would  Action // of a hold, or of drift that is only reported: the action that would be taken
	Cause  Cause
	Judged          // of the guard that decides about the step; without one, only the reason
	Also   []Ruling // of a hold: those of further guards that hold the step

	Rulings []Ruling // of the phase Merge: what a person who decides about a merge should know

	Approved    bool // an approval let it pass a guard that held it
	Deactivates bool // the step is part of a deactivation

	ID         manifest.ID
	APIVersion string
	Origin     manifest.Origin            // zero if the commit does not declare the object
	Because    []activation.Activator     // of a definition's CRD: why the definition is active
	Policy     inventory.ManagementPolicy // which actions are allowed
	Definition bool                       // the object is the CRD or the MRD of a definition
	Serves     bool                       // for an object that declares a kind: the kind is served, so breaking changes matter
	Digest     string                     // of the object as this pass sends it, or as it was last sent

	UID             types.UID // UID and ResourceVersion of the live object, as preconditions of a prune
	ResourceVersion string
	Unready         bool            // of a keep: the object was not ready at the last check, or was not checked
	Renew           inventory.Entry // of a keep that was read again and found unchanged: its new entry

	Err   error           // why nothing is sent, if that is already known
	Waits []reason.Reason // what must exist, or be deleted, first; a later plan carries out the step

	Hidden      diff.Mask     // masks values from Secrets
	AwaitsAny   []manifest.ID // the objects that it waits for; any one of them may be enough
	AwaitsAll   []manifest.ID // further objects that it waits for; all of them are needed
	Terminating bool          // the live object is being deleted
	Phase       Do            // of the deletion or deactivation of an MRD: the request that is due
	Lifted      []Ruling      // the holds that approvals lifted

	Write
	Removal
}

// A Write holds the fields of creates and updates.
type Write struct {
	Live      *unstructured.Unstructured // of an update: the current object
	After     *unstructured.Unstructured // of an update: the object afterwards
	Takes     []diff.Taken               // fields that the update takes from other field managers
	Migrates  []string                   // unserved versions in managed fields; only these are changed
	Activates bool                       // of an MRD: a merge patch makes it Active after the apply
	Adopts    ownership.Takeover         // fields to take over first from the tools that applied the object
	Drops     []ownership.Held           // leftover fields that the update removes
	Needs     string                     // the CRD of this plan that must serve the kind first; "" if it is served

	Sends      func() (*unstructured.Unstructured, error) // returns what is sent; see Object
	Difference func() schema.Difference                   // of an update of a CRD or an MRD
	Compared   *schema.Difference                         // of the complete definitions, if Live and After lack the equal parts of their schemas
	Wants      string                                     // the digest of the wanted object in the commit
	GivesUp    reason.Reason                              // fields that the update gives up, and why they stay
	Whole      FullDefinition                             // After with its schemas, if After lacks them and they are available
	Lean       bool                                       // Live and After are without schemas
	Frees      bool                                       // of an update: only our finalizer must be removed
	Vendored   bool                                       // a copy from a package, whose conversion may differ from the installed one
}

// A Removal holds the fields of prunes and releases.
type Removal struct {
	Deleting bool // the object is already being deleted, so nothing is sent

	Since     metav1.Time  // when the deletion began; zero if the object is not being deleted
	Earlier   bool         // an earlier commit removed the object
	Webhooks  []string     // the names of the webhooks in the object
	Protected bool         // the object has our finalizer
	SameAs    manifest.ID  // the wanted identity of the same object, if it has one
	Disowns   []types.UID  // of a release: owners of the object that the plan prunes
	Revision  LiveRevision // for a deactivation; if Headgate makes the CRDs, only the provider of the package is known
}

// Object returns exactly the object that a create or an update sends. Every call decodes it again, because two thousand decoded
// CRDs take a third of a gigabyte.
func (s Step) Object() (*unstructured.Unstructured, error) {
	if s.Sends == nil {
		return nil, errNothingToSend
	}
	return s.Sends()
}

// errNothingToSend is the error of a step without an object. A guard must refuse such a step.
var errNothingToSend = errors.New("the step has no object to send")

// WillBe returns the object after an update. If the API server refuses the update, it returns the request, which may show the
// cause.
func (s Step) WillBe() (*unstructured.Unstructured, error) {
	if s.After != nil {
		return s.After, nil
	}
	return s.Object()
}

// TakesFrom returns the names of the managers from whom the update takes fields.
func (s Step) TakesFrom() []string {
	var names []string
	for _, t := range s.Takes {
		names = append(names, t.Manager)
	}
	return names
}

// A Do is a request that carries out a step. A step may need several requests, its phases, one after another. Each plan derives the
// due phase from the cluster, so an interrupted process continues where it stopped.
type Do string

// The requests.
const (
	DoNothing   Do = ""
	DoApply     Do = "apply"
	DoActivate  Do = "activate"  // merge-patch an MRD to Active
	DoMigrate   Do = "migrate"   // managed fields
	DoAdopt     Do = "adopt"     // take over managed fields of the tools that applied the object
	DoInactive  Do = "inactive"  // merge-patch an MRD to Inactive
	DoTouch     Do = "touch"     // change a package revision so that Crossplane reconciles it
	DoProtect   Do = "protect"   // add our finalizer
	DoUnprotect Do = "unprotect" // remove our finalizer
	DoDisown    Do = "disown"    // remove an MRD from the owners of its CRD
	DoDelete    Do = "delete"
	DoRelease   Do = "release" // remove our marks
)

// Do returns the request that is due.
func (s Step) Do() Do {
	switch {
	case !s.Writes():
		return DoNothing
	case s.Phase != DoNothing:
		return s.Phase
	case s.Action == Release:
		return DoRelease
	case s.Action == Prune && s.Protected, s.Action == Update && s.Frees:
		return DoUnprotect
	case s.Action == Prune:
		return DoDelete
	case len(s.Migrates) > 0:
		return DoMigrate
	case !s.Adopts.None():
		return DoAdopt
	case s.Deactivates:
		return DoTouch
	case s.Action == Update && s.Activates && s.After == nil:
		return DoActivate
	}
	return DoApply
}

// More reports whether another phase follows the request that is due.
func (s Step) More() bool {
	switch s.Do() {
	case DoMigrate, DoAdopt, DoProtect, DoDisown:
		return true
	case DoApply:
		return s.Activates
	case DoDelete:
		return s.Protected
	case DoUnprotect: // afterwards, the object is gone and may have to be created again
		return (s.Action == Update) == s.Terminating
	}
	return false
}

// OnlyFrees reports whether the object is being deleted and only our finalizer must be removed.
func (s Step) OnlyFrees() bool { return s.Protected && s.Terminating }

// Writes reports whether an action writes an object of the commit.
func (a Action) Writes() bool { return a == Create || a == Update }

// Removes reports whether after an action the sync does not own the object.
func (a Action) Removes() bool { return a == Prune || a == Release }

// Writes reports whether the step sends a request that changes the cluster.
func (s Step) Writes() bool {
	sends := s.Action.Writes() || s.Action.Removes()
	return sends && !s.Waiting() && !s.Deleting
}

// IsDue reports whether the step writes now or after a wait.
func (s Step) IsDue() bool { return s.Writes() || s.Waiting() }

// Failed returns the step with the reason why it is not carried out.
func (s Step) Failed(why reason.Reason) Step {
	s.Err = reason.CodedError{Reason: why}
	return s
}

// Free returns the step without what it waited for.
func (s Step) Free() Step {
	s.Waits, s.AwaitsAny, s.AwaitsAll = nil, nil, nil
	return s
}

// WaitingAs returns the step with what another one waits for, or why that one is not carried out.
func (s Step) WaitingAs(next Step) Step {
	s.Waits, s.AwaitsAll, s.Err = next.Waits, next.AwaitsAll, next.Err
	return s
}

// Unheld returns a held prune as a prune.
func (s Step) Unheld() Step {
	s.Action, s.Would, s.Judged = Prune, "", Judged{}
	return s
}

// Over returns the step after its deletion.
func (s Step) Over() Step {
	s.Deleting = false
	return s
}

// Shown returns the step for a report, which may name objects otherwise.
func (s Step) Shown(id manifest.ID, err error, reason func(reason.Reason) reason.Reason) Step {
	s.ID, s.Err, s.Reason = id, err, reason(s.Reason)
	s.Waits, s.Also = slices.Clone(s.Waits), slices.Clone(s.Also)
	for i, r := range s.Waits {
		s.Waits[i] = reason(r)
	}
	for i, r := range s.Also {
		s.Also[i].Reason = reason(r.Reason)
	}
	return s
}

// An Outcome is the result of one step that writes.
type Outcome struct {
	ID       manifest.ID
	Action   Action
	Digest   string        // digest of the request
	UID      types.UID     // of the object in the answer
	Mark     string        // of the object in the answer
	Foreign  string        // marks of other tools that Headgate sent, in the form of an Entry
	Fields   string        // fields that Headgate applied, in the form of an Entry
	NotReady reason.Reason // why it was not ready after the wait
	Deleting reason.Reason // of a prune: what the deletion waits for; no reason if the object is gone
	Unknown  bool          // whether it is ready is not known yet
	Did      Do            // the request that was sent
	More     bool          // another phase must follow
	Err      error         // why it was not applied or not pruned
}

// IsOver reports whether the step was carried out with all its phases.
func (o Outcome) IsOver() bool { return o.Err == nil && !o.More }

// IsGone reports whether the object was deleted and does not exist any more.
func (o Outcome) IsGone() bool { return o.Action == Prune && o.IsOver() && o.Deleting.None() }
