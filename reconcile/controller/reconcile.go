package controller

import (
	"context"
	"errors"
	"log/slog"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/fleet"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/target"
	"headgate.dev/headgate/render"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimereconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconcile starts, replaces or stops the Sync of a request. It makes no pass: a Sync that runs makes its own.
//
//	the object                                          the Sync
//	is gone                                             stops; its objects stay
//	belongs to another shard                            stops; the other shard goes on with its objects
//	is being deleted                                    ends, as deletionPolicy says
//	cannot run as it is                                 stops, and is Stalled
//	does not run yet, or has another spec               starts anew
//	has another approval, or asks for a pass            makes a pass
//	has a status that someone edited                    goes on, and the status is written again
//	has other labels or annotations                     goes on
//
// A panic stalls the Sync, and the request is tried again after a back-off. All others go on.
func (c *controller) Reconcile(ctx context.Context, q runtimereconcile.Request) (result runtimereconcile.Result, err error) {
	err = engine.Caught("start of the Sync", func() (err error) {
		result, err = c.reconcile(ctx, q)
		return err
	})
	if defect, ok := errors.AsType[engine.DefectError](err); ok {
		slog.Error("a defect of Headgate", "sync", q.String(), "error", defect, "stack", defect.Stack())
		c.blame(inventory.Sync{Namespace: q.Namespace, Name: q.Name}, defect)
	}
	return result, err
}

// blame shows a defect in the status of a Sync.
func (c *controller) blame(name inventory.Sync, defect engine.DefectError) {
	c.mu.Lock()
	one := c.subjects[name]
	c.mu.Unlock()
	if one != nil {
		one.stall(one.generation(), &refusal{v1alpha1.ReasonDefect, defect})
	}
}

func (c *controller) reconcile(ctx context.Context, q runtimereconcile.Request) (runtimereconcile.Result, error) {
	select {
	case <-c.leads:
	case <-ctx.Done():
		return runtimereconcile.Result{}, ctx.Err()
	}
	name := inventory.Sync{Namespace: q.Namespace, Name: q.Name}
	var found v1alpha1.Sync
	err := c.client.Get(ctx, q.NamespacedName, &found)
	if err == nil {
		err = c.checkCRD(ctx)
	}
	switch {
	case apierrors.IsNotFound(err):
		c.forget(name)
		return runtimereconcile.Result{}, nil
	case err != nil:
		return runtimereconcile.Result{}, err
	case !c.runs(&found):
		c.meet(&found)
		return runtimereconcile.Result{}, nil
	}
	one := c.subject(&found)
	asked := one.see(&found)
	one.mend()
	if !found.DeletionTimestamp.IsZero() {
		return c.end(ctx, &found, one)
	}
	if err := c.mark(ctx, &found); err != nil {
		return runtimereconcile.Result{}, err
	}
	wanted := *found.DeepCopy()
	wanted.Default()
	again := runtimereconcile.Result{RequeueAfter: soonest(one.suspend(&found), lookAgain(wanted))}
	err = c.carry(ctx, wanted, one, asked)
	if no, ok := errors.AsType[*refusal](err); ok {
		slog.Warn("the Sync does not run", "sync", name.String(), "reason", no.reason, "error", no.err)
		c.fleet.Remove(name)
		c.join(&found, no.err)
		c.Metrics.Stall(name.Namespace, name.Name, no.reason)
		one.stall(found.Generation, no)
		return again, nil
	}
	c.Around.Expect(wanted, nil)
	return again, err
}

// carry makes a Sync run as its object wants it. asked is set if its annotations ask for a pass.
func (c *controller) carry(ctx context.Context, wanted v1alpha1.Sync, one *subject, asked bool) error {
	if err := c.admit(wanted); err != nil {
		return err
	}
	at, err := c.place(ctx, wanted)
	if err != nil {
		return err
	}
	name := target.NameOf(wanted)
	if now, _, runs := c.fleet.Of(name); runs && fleet.Same(now, wanted) && one.at == at {
		if asked {
			c.fleet.Annotate(wanted)
		}
		return nil
	}
	c.fleet.Stop(name)
	one.at = at
	one.anew()
	as, err := c.Wire(wanted, c.around(wanted, one, at))
	if err != nil {
		return refuse(v1alpha1.ReasonInvalidSpec, "%w", err)
	}
	as.Loop.Grace = grace
	as.Loop.Reconciler.Observer = accounted{as.Loop.Reconciler.Observer, func(ctx context.Context) error { return c.hasAccount(ctx, wanted) }}
	if len(wanted.Spec.DependsOn) > 0 {
		as.Loop.Reconciler.Source = gate{as.Loop.Reconciler.Source, as.Loop.Reconciler.Declare, c, wanted, one}
	}
	if wanted.Spec.Source.SourceRef == nil {
		one.hear(wanted.Generation, reconcile.Event{Kind: reconcile.SourceState}) // it may have had one
	}
	one.warn(wanted, v1alpha1.Removals)
	c.fleet.Start(c.running, wanted, as) //nolint:contextcheck // a Sync runs longer than the request that starts it
	c.watchSource(&wanted)
	return nil
}

// around returns what the passes of a Sync need: its clusters, its approvals, and where its events go.
func (c *controller) around(s v1alpha1.Sync, one *subject, at destination) target.Surroundings {
	around := c.Around
	around.Cluster, around.Secrets, around.Apart = at.cluster, at.home, at.apart
	around.Approvals = one.approvals
	around.Getenv = func(string) string { return "" } // the environment of the controller is not for its tenants
	around.Event = func(e reconcile.Event) {
		c.Around.Event(e)
		one.hear(s.Generation, e)
	}
	return around
}

// admit returns a refusal for a Sync that must not run.
func (c *controller) admit(s v1alpha1.Sync) error {
	s.Default()
	if err := s.ValidateObject(); err != nil {
		return refuse(v1alpha1.ReasonInvalidSpec, "%w", err)
	}
	if _, err := account(s, c.ServiceAccount, c.own); err != nil {
		return err
	}
	if ref := s.Spec.Source.SourceRef; ref != nil && c.NoCrossNamespaceRefs && ref.Namespace != "" && ref.Namespace != s.Namespace {
		return refuse(v1alpha1.ReasonCrossNamespaceRefused, "spec.source.sourceRef.namespace: the controller runs with --no-cross-namespace-refs: name a source in %s", s.Namespace)
	}
	return c.Ceilings.check(s.Spec)
}

// An accounted is a cluster that is observed, and so written, only while the service account of the Sync exists.
type accounted struct {
	reconcile.Observer

	exists func(context.Context) error
}

// Observe observes the cluster.
func (a accounted) Observe(ctx context.Context, want render.Desired) (facts.Observed, error) {
	if err := a.exists(ctx); err != nil {
		return facts.Observed{}, err
	}
	return a.Observer.Observe(ctx, want)
}
