package write

import (
	"context"
	"maps"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/health"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/clusterreader"
	pollingengine "github.com/fluxcd/cli-utils/pkg/kstatus/polling/engine"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/statusreaders"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/cli-utils/pkg/object"
	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// waitsFor reports whether to wait for an object. A kind without a generation has no status to wait for, unless a health check finds one.
func (r *execution) waitsFor(id manifest.ID, live *metav1.PartialObjectMetadata) bool {
	return id.IsCRD() || live.Generation > 0 || r.count.Health.Has(api.GroupKind(id))
}

// wait waits until the applied objects are ready, and records in the outcomes which of them are, and why the others are not. If
// there is more time later, it waits only for a moment, and records only those that are ready. It reports whether it recorded anything.
func (r *execution) wait(ctx context.Context, more bool) bool {
	if r.options.NoWait {
		return false
	}
	crds := map[string]string{}
	var others, hopeless []manifest.ID
	for _, o := range r.outcomes {
		live, applied := r.applied[o.ID]
		switch {
		case !o.Unknown || o.Err != nil:
		case slices.Contains(r.hopeless, o.ID):
			hopeless = append(hopeless, o.ID)
		case !applied || !r.waitsFor(o.ID, live):
		case o.ID.IsCRD():
			crds[o.ID.Name] = live.ResourceVersion
		default:
			others = append(others, o.ID)
		}
	}
	why := r.whyUnready(ctx, hopeless)
	timeout := r.options.Timeout
	if more {
		var cancel context.CancelFunc
		timeout = min(timeout, aMoment)
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if len(crds) > 0 {
		done := 0
		for name, reason := range r.waiter.Wait(ctx, timeout, crds, func(name string) {
			r.TellOf("wait", &done, len(crds), plan.CRD(name))
		}) {
			why[plan.CRD(name)] = reason
		}
	}
	slices.SortFunc(others, manifest.ID.Compare)
	maps.Copy(why, r.waitForStatus(ctx, timeout, others))
	return r.note(why, more || ctx.Err() != nil)
}

// note records in the outcomes which objects are ready, and why others are not. After a short wait, it records unready objects only
// if an earlier pass waited for them. It reports whether it recorded anything.
func (r *execution) note(why map[manifest.ID]reason.Reason, short bool) bool {
	noted := false
	for i := range r.outcomes {
		o := &r.outcomes[i]
		hopeless := slices.Contains(r.hopeless, o.ID)
		if !o.Unknown || o.Err != nil || short && !hopeless && !why[o.ID].None() {
			continue
		}
		noted = true
		o.Unknown = false
		if !why[o.ID].None() {
			o.NotReady = why[o.ID]
		}
		if o.NotReady.None() {
			delete(r.waited, o.ID)
		} else {
			r.waited[o.ID] = r.plan.Want.Revision
		}
		r.news = r.news || o.NotReady.None() || !hopeless
	}
	return noted
}

// whyUnready reads each object once and returns the reasons of those that are not ready.
func (r *execution) whyUnready(ctx context.Context, ids []manifest.ID) map[manifest.ID]reason.Reason {
	why := map[manifest.ID]reason.Reason{}
	reasons, err := api.InParallel(ctx, r.Concurrency, ids, func(ctx context.Context, id manifest.ID) (reason.Reason, error) {
		return r.unready(ctx, r.spelling.Actual(id)), nil
	})
	if err != nil {
		reasons = slices.Repeat([]reason.Reason{reason.Of(err)}, len(ids))
	}
	for i, id := range ids {
		if !reasons[i].None() {
			why[id] = reasons[i]
		}
	}
	return why
}

// waitForStatus waits until objects are ready according to their status, as Flux does.
func (r *execution) waitForStatus(ctx context.Context, timeout time.Duration, ids []manifest.ID) map[manifest.ID]reason.Reason {
	if len(ids) == 0 {
		return nil
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = r.spelling.Actual(id).Brief()
	}
	defer engine.Pause(ctx)()
	defer r.Await("objects that are not ready: " + api.FirstOf(names))()
	why := map[manifest.ID]reason.Reason{}
	mapper := r.mapper()
	reader, err := r.Polling(mapper)
	if err != nil {
		for _, id := range ids {
			why[id] = reason.Of(err)
		}
		return why
	}
	poller := polling.NewStatusPoller(reader, mapper, polling.Options{
		// Read objects one by one, because the list of their kind may be long.
		ClusterReaderFactory: pollingengine.ClusterReaderFactoryFunc(clusterreader.NewDirectClusterReader),
		CustomStatusReaders:  []pollingengine.StatusReader{r.healthReader(ctx, mapper)},
	})
	manager := ssa.NewResourceManager(reader, poller, ssa.Owner{Field: inventory.Manager, Group: "headgate.dev"})
	set := make(object.ObjMetadataSet, 0, len(ids))
	for _, id := range ids {
		set = append(set, asObject(r.spelling.Actual(id)))
	}
	err = manager.WaitForSetWithContext(ctx, set, ssa.WaitOptions{Interval: 2 * time.Second, Timeout: timeout})
	if err == nil {
		return nil
	}
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), api.ShortTimeout)
	defer cancel()
	return r.whyUnready(reading, ids)
}

// A healthReader reads the status of objects with the health checks of the sync.
type healthReader struct {
	pollingengine.StatusReader

	of health.Checks
}

// Supports reports whether a health check decides for a kind.
func (h healthReader) Supports(kind schema.GroupKind) bool { return h.of.Has(kind) }

func (r *execution) healthReader(ctx context.Context, mapper meta.RESTMapper) healthReader {
	return healthReader{statusreaders.NewGenericStatusReader(mapper, func(u *unstructured.Unstructured) (*status.Result, error) {
		return r.count.Compute(ctx, u), nil
	}), r.count.Health}
}

// unready reads an object and returns why it is not ready; no reason if it is.
func (r *execution) unready(ctx context.Context, id manifest.ID) reason.Reason {
	u, err := r.Read(ctx, id)
	if err != nil {
		return reason.Of(r.Explain(err, "get", r.spelling.Actual(id).Brief()))
	}
	return r.count.NotReady(ctx, u)
}

// mapper returns a mapper for the discovered kinds that needs no discovery of its own.
func (r *execution) mapper() meta.RESTMapper {
	var versions []schema.GroupVersion // the mapper needs them to find a kind by its group alone
	known := map[schema.GroupVersion]bool{}
	for _, gk := range r.Surface.Listable {
		for _, version := range r.Surface.Versions[gk] {
			if gv := (schema.GroupVersion{Group: gk.Group, Version: version}); !known[gv] {
				known[gv] = true
				versions = append(versions, gv)
			}
		}
	}
	m := meta.NewDefaultRESTMapper(versions)
	for gk, k := range r.Surface.Kinds {
		scope := meta.RESTScopeRoot
		if k.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		for _, version := range r.Surface.Versions[gk] {
			gv := schema.GroupVersion{Group: gk.Group, Version: version}
			m.AddSpecific(gv.WithKind(gk.Kind), gv.WithResource(k.Resource), gv.WithResource(k.Resource), scope)
		}
	}
	return m
}

// asObject converts an ID to the type that Flux's libraries use.
func asObject(id manifest.ID) object.ObjMetadata {
	return object.ObjMetadata{Namespace: id.Namespace, Name: id.Name, GroupKind: api.GroupKind(id)}
}
