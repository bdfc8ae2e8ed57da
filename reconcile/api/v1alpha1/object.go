package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A SyncList is a list of Syncs, as the API server returns it.
//
// +kubebuilder:object:root=true
type SyncList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Sync `json:"items"`
}

// AddToScheme registers the types of this package, so that clients can read and write Syncs.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Sync{}, &SyncList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Annotations and labels on Sync objects.
const (
	// RequestedAtAnnotation asks for one pass. Every new value makes one, as in Flux. Status.LastHandledReconcileAt then holds the value.
	RequestedAtAnnotation = "reconcile.fluxcd.io/requestedAt"
)

// The types of the conditions of a Sync object. Ready, Reconciling and Stalled have the meaning that kstatus expects: Reconciling and
// Stalled exist only while they are True.
const (
	// ConditionReady is True if the last pass applied everything that the commit asks for and that is not a prune.
	ConditionReady = "Ready"
	// ConditionReconciling is True while a pass, or what it waits for, is not over.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True if no retry helps: the author of the Sync has to change it.
	ConditionStalled = "Stalled"
	// ConditionHeld is True while a guard holds a step.
	ConditionHeld = "Held"
	// ConditionDrifted is True while an applied object differs, and while another writer undoes each correction.
	ConditionDrifted = "Drifted"
	// ConditionSuspended exists only while spec.suspend is true.
	ConditionSuspended = "Suspended"
	// ConditionSourceReady exists only while the repository cannot be read, or the source of Flux is not ready, and is False. Passes over the last
	// commit go on.
	ConditionSourceReady = "SourceReady"
	// ConditionWatched exists only while owned objects are not watched, and is False. Passes find their drift, at spec.interval.
	ConditionWatched = "Watched"
)

// The reasons of conditions, beside the codes of reports.
const (
	ReasonSucceeded   = "Succeeded"      // Ready: the last pass applied what the commit asks for
	ReasonFailed      = "Failed"         // Ready: a step or the pass failed
	ReasonNotReady    = "NotReady"       // Ready: an applied object did not become ready in time
	ReasonBroken      = "Broken"         // Ready: Crossplane, or the tool that applies, did something else than the commit asks for
	ReasonInvalid     = "Invalid"        // Ready: the commit has errors
	ReasonHeld        = "Held"           // Ready: a guard holds a create or an update; Held: the hold has no code
	ReasonProgressing = "Progressing"    // Ready and Reconciling: a pass, or what it waits for, is not over
	ReasonRetrying    = "Retrying"       // Reconciling: the last pass failed, and another one follows
	ReasonNothingHeld = "NothingHeld"    // Held: no guard holds a step
	ReasonDiffers     = "Differs"        // Drifted: objects differ from the commit
	ReasonFight       = "Fight"          // Drifted: another writer undoes each correction
	ReasonNoDrift     = "NoDrift"        // Drifted: no object differs
	ReasonSuspended   = "Suspended"      // Suspended: spec.suspend is true; Ready: creates or updates wait for the end of that
	ReasonOverdue     = "Overdue"        // Suspended: spec.suspension.until has passed
	ReasonNotWatched  = "NotWatched"     // Watched: the service account may not list and watch objects, or the API server does not let it
	ReasonSource      = "SourceNotReady" // SourceReady: the repository cannot be read, or the source of Flux is suspended, fails, has no artifact, or is gone

	ReasonInvalidSpec           = "InvalidSpec"           // Stalled: a field has a value that is not valid
	ReasonAboveCeiling          = "AboveCeiling"          // Stalled: a field asks for more than a flag of the controller allows
	ReasonNoServiceAccount      = "NoServiceAccount"      // Stalled: neither the Sync nor the controller names a service account
	ReasonServiceAccountRefused = "ServiceAccountRefused" // Stalled: the service account is one of Kubernetes, or that of the controller
	ReasonKubeConfigRefused     = "KubeConfigRefused"     // Stalled: the Secret of spec.kubeConfig is missing, may not be read, or holds what is not allowed
	ReasonCrossNamespaceRefused = "CrossNamespaceRefused" // Stalled: sourceRef names another namespace, and the controller has --no-cross-namespace-refs
	ReasonDefect                = "Defect"                // Stalled: Headgate has a defect; report it with the message
)

// The reasons of Events, beside those of conditions.
const (
	EventApprovalsDoNotCount = "ApprovalsDoNotCount" // the annotation headgate.dev/approve, or an approval in it, approves nothing
	EventStatusNotPosted     = "StatusNotPosted"     // the forge does not take the status of a commit; it is posted later
	EventRestartProvider     = "RestartProvider"     // a provider still runs the controllers of deactivated definitions
	EventFieldGoes           = "FieldGoes"           // the Sync has a field that a later version does not know
)

// The limits of a Status. They keep the object small, whatever the size of the repository.
const (
	MostHolds      = 20  // holds in Status.Holds
	MostDrift      = 20  // objects in Status.Drift
	MostPaths      = 10  // paths of one of them
	MostPolicies   = 50  // policies in Status.Activation
	MostMoves      = 100 // objects in each list of Moves
	MostPasses     = 10  // passes in Status.Passes
	LongestMessage = 512 // bytes of a message; those of Held and Ready may have twice as many
	LongestName    = 256 // bytes of any other text
)

// A Status is the result of the passes over a Sync. Only a Sync in a cluster has one, and only the controller writes it. Its size is
// bounded.
type Status struct {
	// ObservedGeneration is the generation of the Sync that the conditions describe.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Reconciling, Stalled, Held, Drifted, Suspended, SourceReady and Watched. The reasons of Held are the codes of reports.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastAttemptedRevision is the commit of the last pass.
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`
	// LastAppliedRevision is the last commit with a pass in which nothing failed. Some of its steps may be held.
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	// LastHandledReconcileAt is the value of the annotation reconcile.fluxcd.io/requestedAt for which a pass was made.
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// Counts has the numbers of the last pass that ended.
	Counts *Counts `json:"counts,omitempty"`
	// Inventory is where the owned objects are recorded.
	Inventory *InventoryRef `json:"inventory,omitempty"`
	// Holds has the first holds of the last pass that ended. Counts.Held is the number of all held steps.
	Holds []HeldSteps `json:"holds,omitempty"`
	// Drift has the first objects that another writer changed and that the last pass did not correct.
	Drift []Drifted `json:"drift,omitempty"`
	// Activation has the number of definitions that each policy of the commit activates. Those with the most come first.
	Activation []PolicyActivation `json:"activation,omitempty"`
	// Moves is what the processes of other shards must know before they prune objects of the same commit.
	Moves *Moves `json:"moves,omitempty"`
	// Passes has the last passes that changed something or had another result, the newest last.
	Passes []PastPass `json:"passes,omitempty"`
}

// Moves are the objects that move between a Sync and those of other shards.
type Moves struct {
	// the newest commit that is planned
	Revision string `json:"revision"`
	// the branch of the commit, if it has one
	Branch string `json:"branch,omitempty"`
	// the repository that the source of Flux names
	Repository string `json:"repository,omitempty"`
	// identifies the cluster of spec.kubeConfig; any if that is not known
	Cluster string `json:"cluster,omitempty"`
	// the first objects of the commit that other Syncs own
	// +kubebuilder:validation:MaxItems=100
	Takes []string `json:"takes,omitempty"`
	// number of further ones
	More int `json:"more,omitempty"`
	// the first objects of this Sync that the commit declares for other Syncs
	// +kubebuilder:validation:MaxItems=100
	Gives []string `json:"gives,omitempty"`
}

// Counts has the numbers of a pass.
type Counts struct {
	// active definitions of the commit
	Active int `json:"active"`
	// all definitions of the commit
	Definitions int `json:"definitions,omitempty"`
	// steps that a guard holds
	Held int `json:"held"`
	// objects that another writer changed and that the pass did not correct
	Drifted int `json:"drifted"`
	// steps that failed
	Failed int `json:"failed,omitempty"`
	// objects that were not ready in time
	NotReady int `json:"notReady,omitempty"`
	// steps that wait for something, and expected effects that are missing
	Waiting int `json:"waiting,omitempty"`
}

// An InventoryRef names a ConfigMap that records the owned objects. It is in the namespace of the Sync, in the cluster that the Sync applies to.
type InventoryRef struct {
	// name of the ConfigMap
	Name string `json:"name"`
}

// HeldSteps are steps that a guard holds for one reason.
type HeldSteps struct {
	// the guard
	Guard string `json:"guard"`
	// the code of the reason
	Reason string `json:"reason,omitempty"`
	// the reason
	Message string `json:"message,omitempty"`
	// what is held: create, update or prune
	Action string `json:"action"`
	// how many steps
	Count int `json:"count"`
	// the first objects
	Objects []string `json:"objects,omitempty"`
	// approves everything that is held and that can be approved
	Digest string `json:"digest,omitempty"`
	// the number that an approval with the digest must cover
	UpTo int `json:"upTo,omitempty"`
	// when the first pass held them
	Since metav1.Time `json:"since"`
	// Revision is the commit of that pass.
	Revision string `json:"revision,omitempty"`
}

// Drifted is an object that another writer changed.
type Drifted struct {
	// the object
	Object string `json:"object"`
	// the field managers that changed it, if they are known
	Managers []string `json:"managers,omitempty"`
	// the first fields that differ; none if the whole object was deleted
	Paths []string `json:"paths,omitempty"`
	// how many more fields differ
	More int `json:"more,omitempty"`
}

// A PolicyActivation has the number of definitions that a policy activates.
type PolicyActivation struct {
	// name of the policy
	Policy string `json:"policy"`
	// definitions that it matches
	Active int `json:"active"`
}

// ResultHeld is the Result of a pass in which nothing failed, and a guard held something.
const ResultHeld = "held"

// A PastPass is the result of a pass.
type PastPass struct {
	// when it ended
	Ended metav1.Time `json:"ended"`
	// how long it took
	Took metav1.Duration `json:"took"`
	// its commit
	Revision string `json:"revision,omitempty"`
	// held if nothing failed, and a guard held something; otherwise the state of the commit status: success, pending, failure or error
	Result string `json:"result"`
	// its problems
	Message string `json:"message,omitempty"`
	// objects that it created
	Created int `json:"created,omitempty"`
	// objects that it updated
	Updated int `json:"updated,omitempty"`
	// objects that it deleted, or began to delete
	Pruned int `json:"pruned,omitempty"`
	// objects that it released
	Released int `json:"released,omitempty"`
	// steps that it held
	Held int `json:"held,omitempty"`
	// steps that failed
	Failed int `json:"failed,omitempty"`
}
