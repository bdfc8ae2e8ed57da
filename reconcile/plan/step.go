package plan

import (
	"errors"

	"cmp"
	"slices"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Changes are the places in which an update changes the object, or would if drift were
// corrected, in order of path. Values of Secrets are masked.
func (s Step) Changes() []diff.Change {
	if s.Action != Update && s.Cause != Drift {
		return nil
	}
	var changes []diff.Change
	if s.Live != nil && s.After != nil {
		hide := s.hidden
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

	// Release takes our marks from an object when the sync ends, and leaves it.
	Release Action = "release"
)

// A Cause is why a step is what it is.
type Cause string

// The causes.
const (
	Commit Cause = "commit" // the commit asks for it
	Drift  Cause = "drift"  // someone changed, or deleted, what we applied
	Retain Cause = "retain" // kept on purpose though the commit does not ask for it any more
)

// A Step is one decision of a plan: the action on one object, and its reason. A create and an update use Write; a prune
// and a release use Removal. A keep and a hold do nothing, and keep the part for the action that they replace.
type Step struct {
	Action Action
	Would  Action // of a hold, or of drift that is only reported: the action that is not taken
	Cause  Cause
	Guard  GuardName // the guard that retains or holds; "" where none does
	Reason Reason    // what it answered
	Clears Clearing  // of a hold: whether it may go away without a person

	Approved    bool // a person let it pass a guard that held it
	Deactivates bool // it is on the way of a definition that is deactivated

	ID         manifest.ID
	APIVersion string
	Origin     manifest.Origin            // zero where the commit does not declare it
	Because    []activation.Activator     // of the CRD of a definition: why it is active
	Policy     inventory.ManagementPolicy // what may be done to it
	Asks       map[string]string          // how the commit wants it to be applied
	Definition bool                       // the object is the CRD, or the MRD, of a definition
	Packaged   bool                       // it comes with a package of the commit
	Serves     bool                       // for an object that declares a kind: the kind is served, so breaking changes matter
	Digest     string                     // digest of the request, current or last

	UID             types.UID // of the live object, as is the next: the preconditions of a prune
	ResourceVersion string
	Unready         bool            // for a keep: it was not ready at the last check, or not checked
	Renew           inventory.Entry // of a keep that was read again and found clean: its new entry

	Err   error    // why nothing is sent, where that is known already
	Waits []Reason // what has to be there, or gone, first: a later plan carries the step out

	hidden diff.Mask     // what came from Secrets
	awaits []manifest.ID // any of them may be what it waits for
	after  []manifest.ID // all of them are what it waits for, too
	going  bool          // the live object is being deleted
	phase  Do            // of an MRD that goes: the request that is due
	isNext bool          // a phase of a step that this pass sent before

	Write
	Removal
}

// A Write is what is special to a create and an update.
type Write struct {
	Live      *unstructured.Unstructured // of an update: the object as it is
	After     *unstructured.Unstructured // of an update: as it will be
	Takes     []diff.Taken               // the field managers from whom the update takes fields
	Migrates  []string                   // versions that managed fields name and that are not served: only those are written
	Activates bool                       // of an MRD: it is made Active after the apply, by a merge patch
	Adopts    ownership.Takeover         // what is taken over first from the tools that applied the object
	Drops     []ownership.Held           // fields that tools left behind, and that the update removes
	Needs     string                     // the CRD of this plan that has to serve its kind first; "" where it is served

	object   func() (*unstructured.Unstructured, error)
	schema   func() schema.Difference // of an update of a CRD, or of an MRD
	wants    string                   // the digest of the wanted object as the commit has it
	whole    FullDefinition           // After with its schemas, where it is without and they can be had
	lean     bool                     // Live and After are without schemas
	frees    bool                     // of an update: only our finalizer has to come off
	vendored bool                     // the commit's copy of a package may differ from the installed one, whose conversion is not known
}

// A Removal is what is special to a prune and a release.
type Removal struct {
	Deleting bool // the object is being deleted already: nothing is sent

	path      string       // the file that declared the object, as the inventory has it
	protected bool         // our finalizer is on it
	otherwise *Step        // an update, to be made where the prune is not
	disowns   []types.UID  // of a release: the owners that the plan prunes
	revision  LiveRevision // for a deactivation
}

// Object is exactly what a create or an update sends. Every call decodes it: two thousand
// CRDs that are decoded at once are a third of a gigabyte.
func (s Step) Object() (*unstructured.Unstructured, error) {
	if s.object == nil {
		return nil, errNothingToSend
	}
	return s.object()
}

// errNothingToSend is the error of a step that a guard must refuse, if no guard ruled on it.
var errNothingToSend = errors.New("the step has no object to send")

// WillBe returns the object after an update. If the API server refuses the update, it returns the request, which may be
// the reason.
func (s Step) WillBe() (*unstructured.Unstructured, error) {
	if s.After != nil {
		return s.After, nil
	}
	return s.Object()
}

// TakesFrom are the names of the managers from whom the update takes fields.
func (s Step) TakesFrom() []string {
	var names []string
	for _, t := range s.Takes {
		names = append(names, t.Manager)
	}
	return names
}

// A Do is the one request that a step asks for. A step may need several, its phases, one after another: each plan
// derives the due phase from the cluster, so an interrupted process continues where it stopped.
type Do string

// The requests.
const (
	DoNothing   Do = ""
	DoApply     Do = "apply"
	DoActivate  Do = "activate"  // an MRD, with a merge patch
	DoMigrate   Do = "migrate"   // managed fields
	DoAdopt     Do = "adopt"     // managed fields of the tools that applied the object become ours
	DoTouch     Do = "touch"     // a package revision, so that Crossplane looks at it
	DoProtect   Do = "protect"   // our finalizer goes on an object
	DoUnprotect Do = "unprotect" // our finalizer comes off
	DoDisown    Do = "disown"    // an MRD is removed from the owners of its CRD
	DoDelete    Do = "delete"
	DoRelease   Do = "release" // our marks come off
)

// Do returns the request that is due.
func (s Step) Do() Do {
	switch {
	case !s.Writes():
		return DoNothing
	case s.phase != DoNothing:
		return s.phase
	case s.Action == Release:
		return DoRelease
	case s.Action == Prune && s.protected, s.Action == Update && s.frees:
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
		return s.protected
	case DoUnprotect: // what is being deleted is gone then, and may have to be made again
		return (s.Action == Update) == s.going
	}
	return false
}

// OnlyFrees reports whether the object is being deleted and only our finalizer has to come off.
func (s Step) OnlyFrees() bool { return s.protected && s.going }

// Writes reports whether the step asks for a request that changes the cluster.
func (s Step) Writes() bool {
	return (s.Action == Create || s.Action == Update || s.Action == Prune || s.Action == Release) && !s.Waiting() && !s.Deleting
}

// An Outcome is the result of one step that writes.
type Outcome struct {
	ID       manifest.ID
	Action   Action
	Digest   string    // digest of the request
	UID      types.UID // of the object as answered
	Mark     string    // of the object as answered
	Foreign  string    // the marks of others on it that Headgate sent, as an Entry remembers them
	Fields   string    // its fields that Headgate applied, as an Entry remembers them
	NotReady Reason    // why it is not ready though it was applied and waited for
	Unknown  bool      // whether it is ready: it is still to be waited for
	Did      Do        // the request that was sent
	More     bool      // another phase has to follow
	Err      error     // why it was not applied, or not pruned
}
