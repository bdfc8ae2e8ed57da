package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// after returns the status of a Sync after an event of its passes, and reports whether the event changes it. generation is that of the
// Sync that the passes are made for, and approve is its annotation for approvals. A quiet pass changes nothing, so it writes nothing.
func after(s v1alpha1.Status, generation int64, approve string, e reconcile.Event) (v1alpha1.Status, bool) {
	next := at(s, generation, metav1.Now())
	next.approve = approve
	return next.after(e)
}

// stalled returns the status of a Sync that does not run until someone changes it.
func stalled(s v1alpha1.Status, generation int64, why, message string) v1alpha1.Status {
	next := at(s, generation, metav1.Now())
	next.observe()
	next.set(v1alpha1.ConditionReady, metav1.ConditionFalse, why, message)
	next.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, why, message)
	next.without(v1alpha1.ConditionReconciling)
	next.without(v1alpha1.ConditionSourceReady)
	next.without(v1alpha1.ConditionWatched)
	return next.Status
}

// A change is a status that is being changed.
type change struct {
	v1alpha1.Status

	before     v1alpha1.Status
	generation int64
	now        metav1.Time
	approve    string // the annotation for approvals
}

func at(s v1alpha1.Status, generation int64, now metav1.Time) *change {
	return &change{Status: *s.DeepCopy(), before: s, generation: generation, now: now.Rfc3339Copy()}
}

func (s *change) after(e reconcile.Event) (v1alpha1.Status, bool) {
	switch e.Kind {
	case reconcile.Began:
		s.began()
	case reconcile.NewCommit:
		s.newCommit(e.Revision)
	case reconcile.Waiting:
		s.progresses("the pass waits for " + e.For)
	case reconcile.Passed:
		s.passed(e)
	case reconcile.Untouched:
		s.untouched(e.Revision)
	case reconcile.SourceState:
		s.source(e.Err)
	default:
	}
	return s.Status, !equality.Semantic.DeepEqual(s.Status, s.before)
}

// began records that passes over a new generation begin.
func (s *change) began() {
	if s.ObservedGeneration == s.generation && meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionStalled) == nil {
		return
	}
	s.without(v1alpha1.ConditionStalled)
	s.without(v1alpha1.ConditionWatched)
	s.progresses("the first pass over this generation has not ended")
	s.set(v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, "the first pass over this generation has not ended")
}

// newCommit records that the first pass over a commit begins. The commit is new to each process that begins to lead, also if passes of
// another process were over it.
func (s *change) newCommit(revision string) {
	if s.ObservedGeneration == s.generation && s.LastAttemptedRevision == short(revision) {
		return
	}
	s.progresses(fmt.Sprintf("the pass over %s has not ended", named(revision)))
}

// observe records that the status is that of the generation. What moved between another spec and other Syncs is not known any more.
func (s *change) observe() {
	if s.ObservedGeneration != s.generation {
		s.Moves = nil
	}
	s.ObservedGeneration = s.generation
}

// progresses records that a pass is not over, and why.
func (s *change) progresses(why string) {
	s.observe()
	s.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonProgressing, why)
}

// source records why the repository or the source of Flux cannot be read; nil if it can.
func (s *change) source(problem error) {
	if problem == nil {
		s.without(v1alpha1.ConditionSourceReady)
		return
	}
	s.set(v1alpha1.ConditionSourceReady, metav1.ConditionFalse, v1alpha1.ReasonSource, problem.Error())
}

// untouched records a commit that asks for nothing else than the last one.
func (s *change) untouched(revision string) {
	was := s.LastAttemptedRevision
	if s.LastAppliedRevision == was {
		s.LastAppliedRevision = short(revision)
	}
	s.LastAttemptedRevision = short(revision)
	if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status == metav1.ConditionTrue {
		ready.Message = strings.Replace(ready.Message, ofCommit(was), ofCommit(revision), 1)
		s.without(v1alpha1.ConditionReconciling)
	}
}

// passed records the result of a pass. A pass that stopped has not checked every object, so the counts, holds and drift stay.
func (s *change) passed(e reconcile.Event) {
	r := e.Report
	if e.Err != nil && r.Error == "" {
		r.Stop(e.Err)
	}
	s.observe()
	s.LastAttemptedRevision = cmp.Or(short(r.Revision), s.LastAttemptedRevision)
	s.Inventory = &v1alpha1.InventoryRef{Name: render.BookPrefix + r.Sync.Name}
	s.remember(r.Past(s.now, metav1.Duration{Duration: e.Took}))
	s.without(v1alpha1.ConditionStalled)
	s.ready(r)
	if r.Error != "" {
		return
	}
	if applied(r) {
		s.LastAppliedRevision = s.LastAttemptedRevision
	}
	s.counts(r)
	s.held(r)
	s.drifted(r)
	s.Activation = activeBy(r.Definitions)
}

// applied reports whether a pass left nothing to do for a later one. A held step is for a person.
func applied(r report.Report) bool {
	return r.Verdict.ExitCode != report.ExitFailed && r.Verdict.Activation.State != report.Pending && r.Withheld() == 0
}

// ready sets Ready and Reconciling. A held prune does not make a Sync unready: everything that the commit asks for is there.
func (s *change) ready(r report.Report) {
	state, why, message := readiness(r)
	if problem := r.FirstProblem(); state == metav1.ConditionFalse && problem != "" {
		message = legible.Short(message, v1alpha1.LongestName) + "; " + problem
	}
	s.setLong(v1alpha1.ConditionReady, state, why, message, 2*v1alpha1.LongestMessage)
	if again := reconciling(state, why); again != "" {
		s.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, again, message)
		return
	}
	s.without(v1alpha1.ConditionReconciling)
}

// reconciling returns why the next passes may make a Sync ready without a person; "" if they cannot, or if it is ready.
func reconciling(ready metav1.ConditionStatus, why string) string {
	switch {
	case ready == metav1.ConditionTrue, why == v1alpha1.ReasonHeld, why == v1alpha1.ReasonSuspended:
		return ""
	case ready == metav1.ConditionUnknown:
		return why
	}
	return v1alpha1.ReasonRetrying
}

// readiness returns the status, the reason and the message of Ready after a pass.
func readiness(r report.Report) (state metav1.ConditionStatus, why, message string) {
	message = r.Verdict.Activation.Description
	switch {
	case r.Error != "":
		return metav1.ConditionFalse, cmp.Or(string(r.ErrorCode), v1alpha1.ReasonFailed), message
	case r.Verdict.ExitCode == report.ExitFailed:
		return metav1.ConditionFalse, failure(r.Summary), message
	case slices.ContainsFunc(r.Steps, holdsWanted):
		return metav1.ConditionFalse, v1alpha1.ReasonHeld, message
	case r.Withheld() > 0 && slices.ContainsFunc(r.Steps, func(s report.Step) bool { return s.Action.Writes() }):
		return metav1.ConditionFalse, v1alpha1.ReasonSuspended, message
	case r.Withheld() > 0: // everything that the commit asks for is there
	case r.Verdict.Activation.State == report.Pending:
		return metav1.ConditionUnknown, v1alpha1.ReasonProgressing, message
	}
	return metav1.ConditionTrue, v1alpha1.ReasonSucceeded, ofCommit(r.Revision) + message
}

// ofCommit returns the beginning of the message of Ready while a commit is applied. It has no numbers of a single pass, or the next quiet
// pass would write another status.
func ofCommit(revision string) string { return "applied " + named(revision) + ": " }

// named returns a short name of a revision: the beginning of a commit, or all of the revision of an artifact.
func named(revision string) string {
	if commits.MatchString(revision) {
		return revision[:12]
	}
	return short(revision)
}

// failure returns the reason of a pass that ended and failed.
func failure(of report.Summary) string {
	switch {
	case of.Failed > 0:
		return v1alpha1.ReasonFailed
	case of.NotReady > 0:
		return v1alpha1.ReasonNotReady
	case of.Broken > 0:
		return v1alpha1.ReasonBroken
	}
	return v1alpha1.ReasonInvalid
}

// holdsWanted reports whether a guard holds a create or an update that the commit asks for.
func holdsWanted(s report.Step) bool { return s.Action == plan.Hold && s.Would.Writes() }

// counts records the numbers of a pass.
func (s *change) counts(r report.Report) {
	s.Counts = &v1alpha1.Counts{
		Active: r.Summary.Active, Definitions: r.Summary.Definitions, Held: r.Summary.Held, Drifted: r.Uncorrected(),
		Failed: r.Summary.Failed, NotReady: r.Summary.NotReady, Waiting: r.Summary.Waiting + r.Summary.Pending,
	}
}

// held records what guards hold, and how to approve it.
func (s *change) held(r report.Report) {
	holds := slices.DeleteFunc(r.Holds(s.now), func(h inventory.Hold) bool { return h.Code == string(reason.StillWaits) }) // it ends without a person
	s.Holds = nil
	for _, h := range holds[:min(len(holds), v1alpha1.MostHolds)] {
		s.Holds = append(s.Holds, v1alpha1.HeldSteps{
			Guard: short(h.Guard), Reason: short(h.Code), Message: legible.Short(h.Reason, v1alpha1.LongestMessage), Action: h.Action, Count: h.Count,
			Objects: shorts(h.Objects, len(h.Objects)), Digest: h.Digest, UpTo: h.UpTo, Since: h.Since, Revision: short(h.Commit),
		})
	}
	if len(s.Holds) == 0 {
		s.set(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonNothingHeld, "no step is held"+unneeded(s.approve, nil, r.Sync))
		return
	}
	why := cmp.Or(s.Holds[0].Reason, v1alpha1.ReasonHeld)
	message := heldMessage(r.Summary.Held, s.Holds, r.Sync) + unneeded(s.approve, s.Holds, r.Sync)
	s.setLong(v1alpha1.ConditionHeld, metav1.ConditionTrue, why, message, 2*v1alpha1.LongestMessage)
}

// unneeded describes the approvals in an annotation that fit no hold: they were used, or what they approve is not held any more. Such an
// approval does not expire: it counts once a later pass holds exactly the same again. So it is shown until a person takes it out.
func unneeded(annotation string, holds []v1alpha1.HeldSteps, of inventory.Sync) string {
	vain := slices.DeleteFunc(entries(annotation), func(a v1alpha1.GivenApproval) bool {
		return slices.ContainsFunc(holds, func(h v1alpha1.HeldSteps) bool { return h.Digest == a.Digest })
	})
	if len(vain) == 0 {
		return ""
	}
	return fmt.Sprintf("; the approval %s in the annotation %s was used, or fits nothing that is held: take it out with kubectl edit sync %s -n %s",
		short(vain[0].Digest), v1alpha1.ApproveAnnotation, of.Name, of.Namespace)
}

// heldMessage returns what the first of some holds is, and how to approve it.
func heldMessage(all int, holds []v1alpha1.HeldSteps, of inventory.Sync) string {
	first := holds[0]
	objects := strings.Join(first.Objects, ", ")
	if more := first.Count - len(first.Objects); more > 0 {
		objects += fmt.Sprintf(" and %d more", more)
	}
	message := fmt.Sprintf("%d held; guard %q holds %s of %s: %s", all, first.Guard, first.Action, objects, first.Message)
	i := slices.IndexFunc(holds, func(h v1alpha1.HeldSteps) bool { return h.Digest != "" })
	if i < 0 {
		return message
	}
	line := approval.Line(holds[i].Digest, holds[i].UpTo)
	return legible.Short(message, v1alpha1.LongestMessage) + fmt.Sprintf("; to approve: headgate approve sync %[1]s -n %[2]s '%[3]s', or kubectl annotate sync %[1]s -n %[2]s --overwrite %[4]s='%[3]s by USER at TIME'",
		of.Name, of.Namespace, line, v1alpha1.ApproveAnnotation)
}

// drifted records which objects differ.
func (s *change) drifted(r report.Report) {
	differ := r.Drifted()
	s.Drift = nil
	for _, step := range differ[:min(len(differ), v1alpha1.MostDrift)] {
		s.Drift = append(s.Drift, driftOf(step))
	}
	switch message := r.Verdict.Drift.Description; {
	case len(r.Fights) > 0:
		s.set(v1alpha1.ConditionDrifted, metav1.ConditionTrue, v1alpha1.ReasonFight, message)
	case len(differ) > 0:
		s.set(v1alpha1.ConditionDrifted, metav1.ConditionTrue, v1alpha1.ReasonDiffers, message)
	default:
		s.set(v1alpha1.ConditionDrifted, metav1.ConditionFalse, v1alpha1.ReasonNoDrift, message)
	}
}

func driftOf(s report.Step) v1alpha1.Drifted {
	paths := make([]string, len(s.Changes))
	for i, c := range s.Changes {
		paths[i] = c.Path
	}
	shown := min(len(paths), v1alpha1.MostPaths)
	return v1alpha1.Drifted{
		Object: short(s.ID.String()), Managers: shorts(s.TakesFrom, v1alpha1.MostPaths), Paths: shorts(paths, v1alpha1.MostPaths), More: len(paths) - shown,
	}
}

// activeBy counts the definitions that each policy activates.
func activeBy(all []report.Definition) []v1alpha1.PolicyActivation {
	counts := map[string]int{}
	for _, d := range all {
		policies := map[string]bool{}
		for _, why := range d.Because {
			if why.Policy != "" && !policies[why.Policy] {
				policies[why.Policy] = true
				counts[why.Policy]++
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var most []v1alpha1.PolicyActivation
	for _, name := range names[:min(len(names), v1alpha1.MostPolicies)] {
		most = append(most, v1alpha1.PolicyActivation{Policy: short(name), Active: counts[name]})
	}
	return most
}

// remember adds a pass that changed something or had another result than the last one.
func (s *change) remember(p inventory.Past) {
	next := v1alpha1.PastPass{
		Ended: s.now, Took: p.Took, Revision: short(p.Revision), Result: resultOf(p), Message: legible.Short(p.Said, v1alpha1.LongestMessage),
		Created: p.Created, Updated: p.Updated, Pruned: p.Pruned + p.Deleting, Released: p.Released, Held: p.Held, Failed: p.Failed,
	}
	if n := len(s.Passes); n > 0 && !p.Changed() && sameResult(s.Passes[n-1], next) {
		return
	}
	s.Passes = append(s.Passes, next)
	s.Passes = s.Passes[max(0, len(s.Passes)-v1alpha1.MostPasses):]
}

// resultOf returns the state of the commit status, or that the pass only held something. A hold fails the status of the commit that
// caused it, and not that of later commits.
func resultOf(p inventory.Past) string {
	if p.ExitCode == report.ExitHeld && p.Held > 0 && p.Activation != string(report.Pending) {
		return v1alpha1.ResultHeld
	}
	return p.Activation
}

// sameResult reports whether two passes have the same result.
func sameResult(a, b v1alpha1.PastPass) bool {
	return a.Revision == b.Revision && a.Result == b.Result && a.Held == b.Held && a.Failed == b.Failed
}

func (s *change) set(condition string, status metav1.ConditionStatus, why, message string) {
	s.setLong(condition, status, why, message, v1alpha1.LongestMessage)
}

func (s *change) setLong(condition string, status metav1.ConditionStatus, why, message string, most int) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: why, Message: legible.Short(message, most), ObservedGeneration: s.generation, LastTransitionTime: s.now,
	})
}

// without removes a condition that exists only while it is True.
func (s *change) without(condition string) { meta.RemoveStatusCondition(&s.Conditions, condition) }

// short returns a text that is short enough for a status.
func short(text string) string { return legible.Short(text, v1alpha1.LongestName) }

// shorts returns the first texts.
func shorts(texts []string, most int) []string {
	var first []string
	for _, text := range texts[:min(len(texts), most)] {
		first = append(first, short(text))
	}
	return first
}
