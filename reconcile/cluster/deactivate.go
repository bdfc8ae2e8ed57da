package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var kindDeployment = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// seeDeactivatable reads what must be known before a definition is deactivated: which CRDs packages have left behind, and the
// capabilities of their revisions.
func (c *Cluster) seeDeactivatable(ctx context.Context, definitions []row, up *facts.Upstream) error {
	up.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{}
	up.Revisions = map[string]plan.LiveRevision{}
	for _, r := range definitions {
		up.Objects[crossplane.MRD(r.name)] = r.meta
		d := up.Definitions[r.name]
		d.Paused = d.Paused || crossplane.IsPaused(r.meta)
		up.Definitions[r.name] = d
	}
	lost, err := c.lost(ctx, up)
	if err != nil {
		return err
	}
	runs := map[types.UID]string{}
	deployments, err := c.served(ctx, kindDeployment)
	if err != nil && !apierrors.IsForbidden(err) { // if it is forbidden, the plan names only the provider
		return c.explain(err, "list", resourceName(c.surface, kindDeployment))
	}
	for _, d := range deployments {
		if ref := metav1.GetControllerOf(d); ref != nil {
			runs[ref.UID] = d.Namespace + "/" + d.Name
		}
	}
	return c.each(ctx, groupKind(crossplane.ProviderRevision("")), func(u *unstructured.Unstructured) {
		capabilities, _, _ := unstructured.NestedStringSlice(u.Object, "status", "capabilities")
		r := plan.LiveRevision{
			Active:    crossplane.IsActiveRevision(u),
			SafeStart: slices.ContainsFunc(capabilities, crossplane.IsSafeStart),
			Touched:   u.GetAnnotations()[plan.TouchAnnotation],
			Runtime:   runs[u.GetUID()],
			Package:   crossplane.ProviderOf(u),
		}
		if converts(u, up) {
			r.Lost = lost[u.GetName()]
		}
		up.Revisions[u.GetName()] = r
	})
}

// lost returns, by package revision, the names of missing definitions whose CRDs that revision left behind. It also stores the
// metadata of these CRDs in up.
func (c *Cluster) lost(ctx context.Context, up *facts.Upstream) (map[string][]string, error) {
	crds, err := c.list(ctx, c.surface, groupKind(plan.CRD("")), "", "")
	if err != nil {
		return nil, c.explain(err, "list", resourceName(c.surface, groupKind(plan.CRD(""))))
	}
	kinds := make(map[string]string, len(c.surface.kinds))
	for gk, k := range c.surface.kinds {
		kinds[k.Resource+"."+gk.Group] = gk.Kind
	}
	lost := map[string][]string{}
	for _, o := range crds {
		revision, installed := crossplane.RevisionOf(o)
		if !installed {
			continue
		}
		up.Objects[idOf(o)] = o
		kind, served := kinds[o.Name]
		if _, there := up.Definitions[o.Name]; !there && served && !(crossplane.Version{}).Exempts(kind) {
			lost[revision] = append(lost[revision], o.Name)
		}
	}
	return lost, nil
}

// converts reports whether a package revision makes definitions, which Crossplane can be configured not to do.
func converts(revision *unstructured.Unstructured, up *facts.Upstream) bool {
	for _, d := range up.Definitions {
		if d.Revision == revision.GetName() {
			return true
		}
	}
	refs, _, _ := unstructured.NestedSlice(revision.Object, "status", "objectRefs")
	return slices.ContainsFunc(refs, func(ref any) bool {
		m, _ := ref.(map[string]any)
		return m["kind"] == crossplane.KindMRD.Kind
	})
}

// touch makes Crossplane reconcile a package revision.
func (r *execution) touch(ctx context.Context, s plan.Step) error {
	gvr, err := r.surface.resource(groupKind(s.ID), "")
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{plan.TouchAnnotation: s.Digest}}})
	if err != nil {
		return err
	}
	err = retry(ctx, func() error {
		_, err := r.at(gvr, s.ID).Patch(ctx, s.ID.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: inventory.Manager + "-activation"})
		return err
	})
	if err != nil {
		return r.refusal(err, "patch", s.ID)
	}
	return nil
}

// inactive returns an error if the definition of a CRD to deactivate has become active: Crossplane would only make the CRD again.
func (r *execution) inactive(ctx context.Context, crd string) error {
	u, err := r.read(ctx, crossplane.MRD(crd))
	if err != nil {
		return r.refusal(err, "get", crossplane.MRD(crd))
	}
	if state, _, _ := unstructured.NestedString(u.Object, "spec", "state"); state == "Active" || u.GetDeletionTimestamp() != nil {
		return fmt.Errorf("its definition was activated meanwhile, so it was not deactivated")
	}
	return nil
}

// Restart restarts the pods of a Deployment, as kubectl rollout restart does.
func (c *Cluster) Restart(ctx context.Context, namespace, name string) error {
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{"kubectl.kubernetes.io/restartedAt": time.Now().UTC().Format(time.RFC3339)},
	}}}})
	if err != nil {
		return err
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	err = retry(ctx, func() error {
		_, err := c.metadata.Resource(deployments).Namespace(namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: inventory.Manager})
		return err
	})
	return c.explain(err, "patch", "the Deployment "+namespace+"/"+name)
}
