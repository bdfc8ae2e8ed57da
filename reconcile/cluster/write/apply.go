// Package write carries out plans, and does nothing that is not in them.
//
//	lease ─► inventory unmoved? ─► intent ─► tiers ─► settled ─► wait
package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/cluster/count"
	"headgate.dev/headgate/reconcile/cluster/established"
	"headgate.dev/headgate/reconcile/cluster/store"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Options configures a Writer. The zero value selects the defaults.
type Options struct {
	Timeout     time.Duration // how long applied objects may take to become ready; default 5 minutes
	NoWait      bool          // do not wait for readiness, except where a later step needs it
	LockTimeout time.Duration // how long to wait for another writer; default 90 seconds
	Ignore      diff.Ignores  // fields that belong to other tools
}

// A Writer carries out the plans of one sync. It may be used by one pass at a time.
type Writer struct {
	*store.Store

	count   *count.Counter
	crds    *established.CRDs
	options Options
	waited  map[manifest.ID]string // objects that did not become ready in time, with the commit for which a pass waited
}

// New returns a Writer that asks a Counter before it prunes, and waits for CRDs together with others of the same configuration.
func New(store *store.Store, count *count.Counter, crds *established.CRDs, options Options) *Writer {
	if options.Timeout <= 0 {
		options.Timeout = 5 * time.Minute
	}
	if options.LockTimeout <= 0 {
		options.LockTimeout = 90 * time.Second
	}
	return &Writer{Store: store, count: count, crds: crds, options: options, waited: map[manifest.ID]string{}}
}

// Apply carries out a plan, and nothing else. A problem with one object is its outcome. An error means that the pass ended early;
// the outcomes are what it did until then. If there is nothing to send, Apply makes no request, unless it has to store the
// inventory or to wait. Objects that were late in an earlier pass over this commit are checked once and not waited for again. If
// the pass continues, Apply returns before it is known whether all objects are ready, so that the next phases can begin sooner.
// plan.ErrMoved means that a new plan is needed.
//
// If the API server does not answer for an object, Apply sends all other steps except prunes, and returns an error.
func (c *Writer) Apply(ctx context.Context, p plan.Plan) ([]plan.Outcome, error) {
	done, err := c.apply(ctx, p)
	if err == nil {
		err = inTrouble(done)
	}
	return done, err
}

func (c *Writer) apply(ctx context.Context, p plan.Plan) ([]plan.Outcome, error) {
	refused, sends := knownRefusals(p)
	if !sends && !p.Remembers() && !p.Waits() {
		return refused, nil
	}
	if c.Surface == nil {
		s, err := c.Discover(ctx)
		if err != nil {
			return nil, err
		}
		c.Surface = s
	}
	sp, err := api.SpellingOf(p.Want, c.Surface, c.DefaultNamespace)
	if err != nil {
		return nil, err
	}
	if !sends && p.Waits() {
		looked, news, err := c.checkUnready(ctx, p, sp)
		refused = append(refused, looked...)
		if err != nil || !news && !p.Remembers() {
			return refused, err
		}
	}
	l, working, err := c.Acquire(ctx, c.options.LockTimeout)
	if err != nil {
		return refused, err
	}
	defer l.Release(ctx)

	have, err := c.Reread(working, p.Version, p.Stale)
	if err == nil {
		have = sp.AsCommit(have)
		c.Use(sp.AsCluster(have))
		err = c.KeepKey(working)
	}
	if err != nil {
		return nil, err
	}
	if !sends {
		settled := record.Settled(p, have, refused)
		if p.Stance.In(plan.Ending) && len(p.Steps) == 0 {
			return refused, c.Forget(ctx, l, settled)
		}
		_, err := c.Save(working, sp.AsCluster(settled))
		return refused, err
	}
	have.ResourceVersion, err = c.Save(working, sp.AsCluster(record.Intent(p, have)))
	if err != nil {
		return nil, err
	}
	run := c.execution(p, sp)
	defer run.end()
	if err := run.carryOut(working, &have); err != nil {
		return run.done(), err
	}
	l.Release(ctx)
	if !plan.Continues(p) { // otherwise the next plan can be sent while these objects become ready
		run.waitOut(ctx, have)
	}
	return run.done(), context.Cause(ctx)
}

// knownRefusals returns the outcomes of the steps that the API server is known to refuse, and whether there are other steps to
// send. A conflict that stays must not cost a lease and two writes in every pass.
func knownRefusals(p plan.Plan) (refused []plan.Outcome, sends bool) {
	for _, s := range p.Steps {
		switch {
		case !s.Writes():
		case s.Err != nil:
			refused = append(refused, plan.Outcome{ID: s.ID, Action: s.Action, Digest: s.Digest, Err: s.Err})
		default:
			sends = true
		}
	}
	return refused, sends
}

// An execution carries out one plan.
type execution struct {
	*Writer
	spelling api.Spelling
	plan     plan.Plan
	total    int

	waiter *established.Waiter // nil if no CRD has to become established

	mu       sync.Mutex
	sent     int
	outcomes []plan.Outcome
	applied  map[manifest.ID]*metav1.PartialObjectMetadata // the API server's answers
	notReady map[string]reason.Reason                      // by CRD: why it is still not served after the wait
	hopeless []manifest.ID                                 // an earlier pass already waited for them in vain
	news     bool                                          // the state of kept objects differs from the inventory
}

func (c *Writer) execution(p plan.Plan, sp api.Spelling) *execution {
	return &execution{
		Writer: c, spelling: sp, plan: p,
		total:    p.Count(plan.Create) + p.Count(plan.Update) + p.Count(plan.Prune) + p.Count(plan.Release),
		applied:  map[manifest.ID]*metav1.PartialObjectMetadata{},
		notReady: map[string]reason.Reason{},
	}
}

// checkUnready checks, if there is nothing to write, whether unready objects are ready now, and whether that is new.
func (c *Writer) checkUnready(ctx context.Context, p plan.Plan, sp api.Spelling) (_ []plan.Outcome, news bool, err error) {
	run := c.execution(p, sp)
	defer run.end()
	if err := run.write(ctx); err != nil {
		return nil, false, err
	}
	run.wait(ctx, plan.Continues(p))
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return run.outcomes, run.news, err
}

// aMoment is how long a pass waits for objects while it holds its lease, or before its next round.
const aMoment = 2 * time.Second

// carryOut writes what is in the plan, waits a moment for the objects to become ready, and stores the outcomes.
func (r *execution) carryOut(ctx context.Context, have *inventory.Inventory) error {
	stopped := r.write(ctx)
	if stopped == nil {
		r.wait(ctx, true)
	}
	return errors.Join(stopped, r.settle(ctx, have))
}

// settle stores the outcomes, even if the pass was stopped.
func (r *execution) settle(ctx context.Context, have *inventory.Inventory) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), api.ShortTimeout)
	defer cancel()
	var err error
	have.ResourceVersion, err = r.Save(ctx, r.spelling.AsCluster(record.Settled(r.plan, *have, r.outcomes)))
	return err
}

// waitOut waits for objects that take longer to become ready, and records the result. It writes no objects and so holds no lease:
// other processes need not wait for it, even after it was killed. If it cannot record the result, the next pass checks again.
func (r *execution) waitOut(ctx context.Context, have inventory.Inventory) {
	if !r.wait(ctx, false) || ctx.Err() != nil {
		return
	}
	l, working, err := r.Acquire(ctx, 0)
	if err != nil {
		return
	}
	defer l.Release(ctx)
	if now, err := r.Inventory(working); err == nil && now.ResourceVersion == have.ResourceVersion {
		_ = r.settle(working, &have)
	}
}

// done returns the outcomes, sorted by object.
func (r *execution) done() []plan.Outcome {
	slices.SortFunc(r.outcomes, func(a, b plan.Outcome) int { return a.ID.Compare(b.ID) })
	return r.outcomes
}

func (r *execution) end() {
	if r.waiter != nil {
		r.waiter.Leave()
	}
}

// isHopeless reports whether a step is a keep that an earlier pass waited for in vain. Such a step is observed once and not waited
// for.
func (r *execution) isHopeless(s plan.Step) bool {
	commit, waited := r.waited[s.ID]
	return waited && commit == r.plan.Want.Revision && s.Action == plan.Keep
}

// write carries out the steps tier by tier. The error is why it stopped.
func (r *execution) write(ctx context.Context) error {
	steps := slices.DeleteFunc(slices.Clone(r.plan.Steps), func(s plan.Step) bool { return !s.Writes() && !s.Unready })
	if crds := r.awaited(steps); len(crds) > 0 {
		var err error
		if r.waiter, err = r.crds.Join(ctx, r.Client, crds); err != nil {
			return err
		}
	}
	for _, tier := range tiers(steps) {
		if err := api.Fence(ctx, 0); err != nil {
			return err
		}
		if trouble := inTrouble(r.outcomes); trouble != nil && (prunes(tier) || r.Reach(ctx) != nil) {
			return trouble
		}
		if err := r.ready(ctx, tier); err != nil {
			return err
		}
		r.carryAll(ctx, tier)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// tiers returns the steps tier by tier.
func tiers(steps []plan.Step) (all [][]plan.Step) {
	for i, s := range steps {
		if i == 0 || s.Tier() != steps[i-1].Tier() {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], s)
	}
	return all
}

// carryAll carries out the steps of a tier, several at the same time, and records their outcomes.
func (r *execution) carryAll(ctx context.Context, tier []plan.Step) {
	before := slices.Clone(r.outcomes)
	g := errgroup.Group{}
	g.SetLimit(r.Concurrency)
	for _, s := range tier {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			r.record(r.safely(ctx, s, before))
			return nil
		})
	}
	_ = g.Wait() // errors of steps are in the outcomes
}

// awaited returns the names of the CRDs that have to become established.
func (r *execution) awaited(steps []plan.Step) []string {
	var names []string
	for _, s := range steps {
		if s.ID.IsCRD() && s.Action != plan.Prune && s.Action != plan.Release && !r.isHopeless(s) {
			names = append(names, s.ID.Name)
		}
	}
	return names
}

// prunes reports whether a tier deletes something.
func prunes(tier []plan.Step) bool {
	return slices.ContainsFunc(tier, func(s plan.Step) bool { return s.Action == plan.Prune })
}

// safely carries out a step. A panic is the error of its outcome.
func (r *execution) safely(ctx context.Context, s plan.Step, before []plan.Outcome) (o plan.Outcome, live *metav1.PartialObjectMetadata) {
	defect := engine.Caught("step", func() error {
		o, live = r.carry(ctx, s, before)
		return nil
	})
	if defect != nil {
		return plan.Outcome{ID: s.ID, Action: s.Action, Digest: s.Digest, Did: s.Do(), More: s.More(), Err: defect}, nil
	}
	return o, live
}

func (r *execution) record(o plan.Outcome, live *metav1.PartialObjectMetadata) {
	r.mu.Lock()
	r.outcomes = append(r.outcomes, o)
	if live != nil {
		r.applied[o.ID] = live
	}
	r.mu.Unlock()
	r.TellOf("apply", &r.sent, r.total, o.ID)
}

// ready waits for the kinds that a tier needs and that the CRDs of this pass define.
func (r *execution) ready(ctx context.Context, tier []plan.Step) error {
	crds := map[string]string{}
	waiting := false
	for _, s := range tier {
		if _, served := r.Surface.Kinds[api.GroupKind(s.ID)]; s.Needs == "" || served {
			continue
		}
		waiting = true
		if o, ok := r.applied[plan.CRD(s.Needs)]; ok {
			crds[s.Needs] = o.ResourceVersion
		}
	}
	if !waiting {
		return nil
	}
	if r.waiter != nil && len(crds) > 0 {
		for name, why := range r.waiter.Wait(ctx, r.options.Timeout, crds, func(string) {}) {
			r.notReady[name] = why
			delete(crds, name)
		}
	}
	return r.rediscover(ctx, tier, crds)
}

// rediscover repeats discovery until it lists the kinds of the established CRDs, because discovery lags behind them.
func (r *execution) rediscover(ctx context.Context, tier []plan.Step, established map[string]string) error {
	patient := time.Now().Add(min(r.options.Timeout, 30*time.Second))
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		s, err := r.Discover(ctx)
		if err != nil {
			return err
		}
		r.Surface, r.spelling.Surface = s, s
		late := slices.ContainsFunc(tier, func(step plan.Step) bool {
			_, expected := established[step.Needs]
			_, err := s.Resource(api.GroupKind(step.ID), api.VersionOf(step.APIVersion))
			return expected && err != nil
		})
		if !late || time.Now().After(patient) {
			return nil
		}
		if api.Sleep(ctx, pause); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// carry carries out one step. before holds the outcomes of earlier tiers.
func (r *execution) carry(ctx context.Context, s plan.Step, before []plan.Outcome) (plan.Outcome, *metav1.PartialObjectMetadata) {
	o := plan.Outcome{ID: s.ID, Action: s.Action, Digest: s.Digest, Did: s.Do(), More: s.More(), Err: s.Err}
	if o.Err != nil {
		return o, nil
	}
	id := r.spelling.Actual(s.ID)
	if s.Action == plan.Keep { // applied in an earlier pass, and not ready then
		return r.look(ctx, s, id, o)
	}
	if why := s.NotEmpty(before); !why.None() {
		o.Err = reason.CodedError{Reason: why}
		return o, nil
	}
	live, err := r.do(ctx, s, id)
	switch o.Err = err; {
	case err != nil:
		return o, nil
	case o.Did == plan.DoMigrate:
		o.NotReady = reason.FieldsMigrated.With()
	case o.Did == plan.DoAdopt:
		o.UID = s.UID
	case s.Action == plan.Prune && !o.More && o.Did != plan.DoInactive:
		o.Deleting = r.deletion(ctx, s, id)
	case live != nil:
		o.UID, o.Mark, o.Foreign = live.UID, inventory.Mark(live), ownership.SentMarks(live)
		o.Fields = diff.OwnFields(live, r.options.Ignore.Paths(s.ID))
		o.Unknown = !r.options.NoWait && r.waitsFor(s.ID, live)
	}
	return o, live
}

// look reads an object that is kept and was not ready, unless an earlier pass already waited for it in vain.
func (r *execution) look(ctx context.Context, s plan.Step, id manifest.ID, o plan.Outcome) (plan.Outcome, *metav1.PartialObjectMetadata) {
	o.Unknown = true
	if r.isHopeless(s) {
		r.mu.Lock()
		r.hopeless = append(r.hopeless, s.ID)
		r.mu.Unlock()
		return o, nil
	}
	live, err := r.Get(ctx, r.Surface, id)
	if err != nil {
		o.NotReady = reason.Of(r.Explain(err, "get", id.Brief()))
	} else if live.DeletionTimestamp != nil { // it cannot become ready any more
		o.Unknown, o.NotReady = false, facts.WhyDeleting(live)
	}
	return o, live
}

// do makes the request of a step that is due, and returns the metadata of an object that it applied or activated.
func (r *execution) do(ctx context.Context, s plan.Step, id manifest.ID) (*metav1.PartialObjectMetadata, error) {
	switch s.Do() {
	case plan.DoDelete, plan.DoInactive:
		return nil, r.prune(ctx, s, id)
	case plan.DoProtect:
		return nil, r.finalizers(ctx, s, id, plan.WithProtection)
	case plan.DoUnprotect:
		return nil, r.finalizers(ctx, s, id, plan.WithoutProtection)
	case plan.DoDisown:
		return nil, r.disown(ctx, s)
	case plan.DoRelease:
		return nil, r.release(ctx, s, id)
	case plan.DoTouch:
		return nil, r.touch(ctx, s)
	case plan.DoMigrate:
		return nil, r.migrate(ctx, s, id)
	case plan.DoAdopt:
		return nil, r.adopt(ctx, s, id)
	case plan.DoActivate:
		return r.activate(ctx, s, id)
	case plan.DoApply:
		if err := r.mayInstall(ctx, s); err != nil {
			return nil, err
		}
		return r.patch(ctx, s, id)
	case plan.DoNothing:
	}
	return nil, nil
}

// mayInstall returns an error if a package must not be sent, because the policies of the cluster allow more than planned.
func (r *execution) mayInstall(ctx context.Context, s plan.Step) error {
	if !crossplane.IsPackage(s.ID) {
		return nil
	}
	if policy := r.failedPolicy(); policy != "" {
		return fmt.Errorf("not sent: the policy %s could not be applied, so the package may activate more than the commit allows", policy)
	}
	if r.plan.Want.Owner != render.OwnerCrossplane {
		return nil
	}
	return r.recount(ctx)
}

// failedPolicy returns the name of a policy that this pass could not apply; "" if there is none.
func (r *execution) failedPolicy() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.outcomes {
		if o.Err != nil && o.ID == crossplane.MRAP(o.ID.Name) {
			return o.ID.Name
		}
	}
	return ""
}

// patch applies an object and returns its metadata.
func (r *execution) patch(ctx context.Context, s plan.Step, id manifest.ID) (*metav1.PartialObjectMetadata, error) {
	gvr, err := r.Surface.Resource(api.GroupKind(id), api.VersionOf(s.APIVersion))
	if err != nil {
		return nil, r.unserved(s, err)
	}
	object, err := s.Object()
	if err != nil {
		return nil, err
	}
	object.SetUID(s.UID) // an object that was made anew since belongs to its maker; a create has none
	force := len(s.Takes) > 0
	ctx = api.Conceal(ctx, s.Mask(), facts.MaskOf(object))
	var live *metav1.PartialObjectMetadata
	send := func(version string) error {
		object.SetResourceVersion(version)
		body, err := json.Marshal(object)
		if err != nil {
			return err
		}
		defer r.Large(ctx, len(body))()
		attempt := func() error {
			live, err = r.At(gvr, id).Patch(ctx, id.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: inventory.Manager, Force: &force})
			return err
		}
		err = api.Retry(ctx, attempt)
		// With several API servers, another one may learn of a new kind a moment later.
		for pause := 100 * time.Millisecond; api.IsUnknownKind(err) && pause < 5*time.Second && ctx.Err() == nil; pause *= 2 {
			api.Sleep(ctx, pause)
			err = api.Retry(ctx, attempt)
		}
		return err
	}
	if force && s.Live != nil { // take fields only from the field managers that were observed
		err = r.sameButStatus(ctx, s, id, gvr, func(now metav1.Object) error { return send(now.GetResourceVersion()) })
	} else {
		err = send("")
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, r.Refusal(replacedMeanwhile(s, err), "patch", id)
	}
	return live, nil
}

// replacedMeanwhile returns the reason for a refused update if the observed object was deleted, and perhaps made anew, since. The
// API server refuses another UID as a change of an immutable field, and as a conflict if there is no object.
func replacedMeanwhile(s plan.Step, err error) error {
	status, ok := api.StatusOf(err)
	if s.UID == "" || !ok {
		return err
	}
	causes := []metav1.StatusCause{}
	if status.Details != nil {
		causes = status.Details.Causes
	}
	switch {
	case status.Reason == metav1.StatusReasonInvalid && slices.ContainsFunc(causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" }):
		return reason.CodedError{Reason: reason.MadeAnew.With()}
	case status.Reason == metav1.StatusReasonConflict && len(causes) == 0, apierrors.IsNotFound(err) && !api.IsUnknownKind(err):
		return errChanged
	}
	return err
}

// unserved returns why the kind of a step is not served.
func (r *execution) unserved(s plan.Step, err error) error {
	if s.Needs == "" {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if why, waited := r.notReady[s.Needs]; waited {
		return reason.CodedError{Reason: reason.CRDNotServed.With(err.Error(), s.Needs, why)}
	}
	for _, o := range r.outcomes {
		if o.ID == plan.CRD(s.Needs) && o.Err != nil {
			return fmt.Errorf("%w: the CRD %s was not applied: %w", err, s.Needs, o.Err)
		}
	}
	return fmt.Errorf("%w; it needs the CRD %s", err, s.Needs)
}

// prune deletes or deactivates exactly the object that was observed, after counting its dependents once more.
func (r *execution) prune(ctx context.Context, s plan.Step, id manifest.ID) error {
	err := r.unused(ctx, id)
	if err != nil {
		return err
	}
	if s.Deactivates && r.plan.Want.Owner == render.OwnerCrossplane {
		if err := r.mayDeactivate(ctx, id); err != nil {
			return err
		}
	}
	if s.Phase == plan.DoInactive {
		return r.deactivate(ctx, s, id)
	}
	propagation := metav1.DeletePropagationBackground
	if crossplane.IsMRD(id) { // its CRD is deleted by a step of its own
		propagation = metav1.DeletePropagationOrphan
	}
	return r.remove(ctx, s, id, propagation)
}

// remove deletes exactly the object that was observed.
func (r *execution) remove(ctx context.Context, s plan.Step, id manifest.ID, propagation metav1.DeletionPropagation) error {
	err := r.Reading(ctx, r.Surface, api.GroupKind(id), func(gvr schema.GroupVersionResource) error {
		return api.Retry(ctx, func() error {
			return r.At(gvr, id).Delete(ctx, id.Name, metav1.DeleteOptions{
				Preconditions:     &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion},
				PropagationPolicy: &propagation,
			})
		})
	})
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case apierrors.ReasonForError(err) != metav1.StatusReasonConflict:
		return r.Refusal(err, "delete", id)
	}
	if s.Deactivates && crossplane.IsMRD(id) { // Crossplane makes it again, so a repeated request may find the new object
		if now, err := r.Get(ctx, r.Surface, id); err == nil && now.UID != s.UID {
			return nil
		}
	}
	return errChanged
}

// deletion returns what the requested deletion of an object waits for; no reason if the object is gone, or if another one has its
// name.
func (r *execution) deletion(ctx context.Context, s plan.Step, id manifest.ID) reason.Reason {
	live, err := r.Get(ctx, r.Surface, id)
	switch {
	case apierrors.IsNotFound(err) && !api.IsUnknownKind(err), err == nil && live.UID != s.UID:
		return reason.Reason{}
	case err != nil:
		return reason.DeletionUnknown.With(r.Explain(err, "get", id.Brief()).Error())
	}
	return facts.WhyDeleting(live)
}

var errChanged = reason.CodedError{Reason: reason.ChangedMeanwhile.With()}

// finalizers changes the finalizers of exactly the object that was observed, or of one that is being deleted anyway.
func (r *execution) finalizers(ctx context.Context, s plan.Step, id manifest.ID, change func([]string) []string) error {
	return r.amend(ctx, id, func(live *metav1.PartialObjectMetadata) ([]byte, error) {
		if live.UID != s.UID || live.DeletionTimestamp == nil && live.ResourceVersion != s.ResourceVersion {
			return nil, errChanged
		}
		return json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": live.UID, "resourceVersion": live.ResourceVersion, "finalizers": change(live.Finalizers),
		}})
	})
}

// unused returns an error if live objects depend on an object, or if that is not known. The guards checked the same while planning,
// but the cluster may have changed since.
func (r *execution) unused(ctx context.Context, id manifest.ID) error {
	var q question.Of[question.Counted] = question.Dependents{Of: id}
	if id.IsNamespace() {
		q = question.Inside{Of: id}
	}
	protected := question.Protectors{Of: id}
	answers, err := r.count.Answer(ctx, []question.Any{q, protected})
	if err != nil {
		return err
	}
	known := question.Known{Answers: answers}
	if a, is := question.Get(known, protected); !is.Known() || a.Count > 0 {
		return reason.CodedError{Reason: reason.ProtectedMeanwhile.With(reason.Of(is.Err).Or(reason.AnExample.With(a.Example)))}
	}
	switch a, is := question.Get(known, q); {
	case !is.Known():
		return reason.CodedError{Reason: reason.UncountableNow.With(reason.Of(is.Err))}
	case a.Count > 0:
		return reason.CodedError{Reason: reason.UsedMeanwhile.With(a.Count, a.Example)}
	}
	return nil
}

// inTrouble returns an error if the API server did not answer for an object. Then it is not known whether that object is as wanted,
// so nothing may be pruned.
func inTrouble(done []plan.Outcome) error {
	for _, o := range done {
		if o.Err != nil && api.OfServer(o.Err) {
			return fmt.Errorf("the API server is in trouble, so nothing is pruned: %w", o.Err)
		}
	}
	return nil
}
