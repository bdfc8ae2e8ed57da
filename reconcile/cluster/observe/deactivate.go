package observe

import (
	"context"
	"slices"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/facts"
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
func (c *Reader) seeDeactivatable(ctx context.Context, definitions []row, up *facts.Upstream) error {
	up.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{}
	up.Revisions = map[string]plan.LiveRevision{}
	for _, r := range definitions {
		up.Objects[crossplane.MRD(r.name)] = r.meta
		d := up.Definitions[r.name]
		d.Paused = d.Paused || crossplane.IsPaused(r.meta)
		up.Definitions[r.name] = d
	}
	crd, err := c.Objects.Resource(api.Definitions).Get(ctx, crossplane.MRDs, metav1.GetOptions{})
	if err != nil {
		return c.Explain(err, "get", "CustomResourceDefinition "+crossplane.MRDs)
	}
	up.CanDeactivate = facts.CanDeactivate(ctx, crd, c.Surface.Kinds[crossplane.KindMRD].Version)
	lost, err := c.lost(ctx, up)
	if err != nil {
		return err
	}
	runs := map[types.UID]string{}
	deployments, err := c.Served(ctx, kindDeployment)
	if err != nil && !apierrors.IsForbidden(err) { // if it is forbidden, the plan names only the provider
		return c.Explain(err, "list", api.ResourceName(c.Surface, kindDeployment))
	}
	for _, d := range deployments {
		if ref := metav1.GetControllerOf(d); ref != nil {
			runs[ref.UID] = d.Namespace + "/" + d.Name
		}
	}
	return c.Each(ctx, api.GroupKind(crossplane.ProviderRevision("")), func(u *unstructured.Unstructured) {
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
func (c *Reader) lost(ctx context.Context, up *facts.Upstream) (map[string][]string, error) {
	crds, err := c.List(ctx, c.Surface, api.GroupKind(plan.CRD("")), "", "")
	if err != nil {
		return nil, c.Explain(err, "list", api.ResourceName(c.Surface, api.GroupKind(plan.CRD(""))))
	}
	kinds := make(map[string]string, len(c.Surface.Kinds))
	for gk, k := range c.Surface.Kinds {
		kinds[k.Resource+"."+gk.Group] = gk.Kind
	}
	lost := map[string][]string{}
	for _, o := range crds {
		revision, installed := crossplane.RevisionOf(o)
		if !installed {
			continue
		}
		up.Objects[api.IDOf(o)] = o
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
