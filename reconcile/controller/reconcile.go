package controller

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/fleet"
	"headgate.dev/headgate/reconcile/inventory"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimereconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconcile starts, replaces or stops the Sync of a request. It makes no pass: a Sync that runs makes its own.
//
//	the object                                          the Sync
//	is gone                                             stops; its objects stay
//	cannot run as it is                                 stops, and is Stalled
//	does not run yet, or has another spec               starts anew
//	has another approval, or asks for a pass            makes a pass
//	has another status, or other labels or annotations  goes on
func (c *controller) Reconcile(ctx context.Context, q runtimereconcile.Request) (runtimereconcile.Result, error) {
	select {
	case <-c.leads:
	case <-ctx.Done():
		return runtimereconcile.Result{}, ctx.Err()
	}
	name := inventory.Sync{Namespace: q.Namespace, Name: q.Name}
	var found v1alpha1.Sync
	err := c.client.Get(ctx, q.NamespacedName, &found)
	switch {
	case apierrors.IsNotFound(err):
		c.forget(name)
		return runtimereconcile.Result{}, nil
	case err != nil:
		return runtimereconcile.Result{}, err
	}
	one := c.subject(&found)
	asked := one.see(&found)
	wanted := *found.DeepCopy()
	wanted.Default()
	err = c.carry(wanted, one, asked)
	if no, ok := errors.AsType[*refusal](err); ok {
		slog.Warn("the Sync does not run", "sync", name.String(), "reason", no.reason, "error", no.err)
		c.fleet.Remove(name)
		one.stall(found.Generation, no)
		return runtimereconcile.Result{}, nil
	}
	return runtimereconcile.Result{}, err
}

// carry makes a Sync run as its object wants it. asked is set if its annotations ask for a pass.
func (c *controller) carry(wanted v1alpha1.Sync, one *subject, asked bool) error {
	if err := admit(wanted); err != nil {
		return err
	}
	name := fleet.NameOf(wanted)
	if now, _, runs := c.fleet.Of(name); runs && fleet.Same(now, wanted) {
		if asked {
			c.fleet.Annotate(wanted)
		}
		return nil
	}
	c.fleet.Stop(name)
	around := c.Around
	around.Cluster = c.Config
	around.Approvals = one.approvals
	around.Getenv = func(string) string { return "" } // the environment of the controller is not for its tenants
	generation := wanted.Generation
	around.Event = func(e reconcile.Event) {
		c.Around.Event(e)
		one.hear(generation, e)
	}
	as, err := c.Wire(wanted, around)
	if err != nil {
		return refuse("InvalidSpec", "%w", err)
	}
	as.Loop.Grace = grace
	c.fleet.Start(c.running, wanted, as)
	return nil
}

// admit returns a refusal for a Sync that must not run.
func admit(s v1alpha1.Sync) error {
	if err := s.Validate(); err != nil {
		return refuse("InvalidSpec", "%w", err)
	}
	if u, err := url.Parse(s.Spec.Source.Repo); err != nil || !strings.HasPrefix(u.Scheme, "http") || u.Host == "" {
		return refuse("InvalidSpec", "spec.source.repo: must be an https URL, because the controller's files are not for Syncs")
	}
	return nil
}
