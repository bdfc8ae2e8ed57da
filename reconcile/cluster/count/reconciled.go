package count

import (
	"context"
	"fmt"
	"maps"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds with which other tools reconcile objects. Their status lists the objects.
var (
	kustomizations = schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}
	resourceSets   = schema.GroupKind{Group: "fluxcd.controlplane.io", Kind: "ResourceSet"}
	helmReleases   = schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}
	applications   = schema.GroupKind{Group: "argoproj.io", Kind: "Application"}
)

// Reconcilers returns why objects must not be taken from the tool that owns them: an object of the tool, such as a Kustomization,
// lists them, or such objects cannot be read. Suspended ones do not count, nor do those for another cluster. A tool may also
// reconcile from another cluster, which only the user can know.
func (c *Counter) Reconcilers(ctx context.Context, of map[manifest.ID]metav1.Object) (map[manifest.ID]reason.Reason, error) {
	why := map[manifest.ID]reason.Reason{}
	claims := map[ownership.Tool]map[manifest.ID]ownership.Claim{}
	for id, live := range of {
		claim := ownership.Of(live, c.Sync, "")
		if claim.Tool == "" {
			continue
		}
		if claims[claim.Tool] == nil {
			claims[claim.Tool] = map[manifest.ID]ownership.Claim{}
		}
		claims[claim.Tool][id] = claim
	}
	for tool, ids := range claims {
		lists, err := c.listedBy(ctx, tool, ids)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for id, claim := range ids {
			switch by := lists[id]; {
			case err != nil:
				why[id] = reason.ReconcilerUnknown.With(claim.By, err.Error())
			case by != "":
				why[id] = reason.StillReconciled.With(by)
			}
		}
	}
	return why, nil
}

// listedBy returns, for each of the given objects that a tool reconciles, the object of the tool that lists it.
func (c *Counter) listedBy(ctx context.Context, tool ownership.Tool, ids map[manifest.ID]ownership.Claim) (map[manifest.ID]string, error) {
	switch tool {
	case ownership.Flux:
		all := map[manifest.ID]string{}
		for _, gk := range []schema.GroupKind{kustomizations, helmReleases, resourceSets} {
			by, err := c.listed(ctx, gk, ids, listedByFlux)
			if err != nil {
				return nil, err
			}
			maps.Copy(all, by)
		}
		return all, nil
	case ownership.ArgoCD:
		return c.listed(ctx, applications, ids, listedByArgo)
	case ownership.Helm:
		return c.releases(ctx, ids)
	}
	return nil, nil
}

// listed returns, for each of the given objects that is listed, the object of this kind that lists it. lists returns what an object
// lists.
func (c *Counter) listed(ctx context.Context, gk schema.GroupKind, ids map[manifest.ID]ownership.Claim, lists func(*unstructured.Unstructured, map[manifest.ID]ownership.Claim) []manifest.ID) (map[manifest.ID]string, error) {
	by := map[manifest.ID]string{}
	if err := c.Surface.Known(gk); err != nil {
		return nil, err
	}
	gvr, err := c.Surface.Resource(gk, "")
	if err != nil {
		return by, nil //nolint:nilerr // the tool is not installed
	}
	options := metav1.ListOptions{Limit: 100}
	for {
		page, err := c.Objects.Resource(gvr).List(ctx, options)
		if err != nil {
			return nil, c.Explain(err, "list", api.ResourceName(c.Surface, gk))
		}
		for i := range page.Items {
			o := &page.Items[i]
			for _, id := range lists(o, ids) {
				by[id] = fmt.Sprintf("the %s %s/%s", gk.Kind, o.GetNamespace(), o.GetName())
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return by, nil
		}
	}
}

// listedByFlux returns the objects that a Kustomization or HelmRelease reconciles: the entries of its inventory or, without
// one, the objects with its name in their labels.
func listedByFlux(o *unstructured.Unstructured, ids map[manifest.ID]ownership.Claim) []manifest.ID {
	if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); suspended {
		return nil
	}
	if remote, _, _ := unstructured.NestedMap(o.Object, "spec", "kubeConfig"); remote != nil {
		return nil
	}
	entries, known, _ := unstructured.NestedSlice(o.Object, "status", "inventory", "entries")
	listed := map[any]bool{}
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok {
			listed[entry["id"]] = true
		}
	}
	var all []manifest.ID
	for id, claim := range ids {
		named := claim.By == fmt.Sprintf("the Flux %s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		if known && listed[inventory.Key(id)] || !known && named {
			all = append(all, id)
		}
	}
	return all
}

// listedByArgo returns which of the given objects an Application reconciles, according to its status.
func listedByArgo(o *unstructured.Unstructured, ids map[manifest.ID]ownership.Claim) []manifest.ID {
	server, _, _ := unstructured.NestedString(o.Object, "spec", "destination", "server")
	name, _, _ := unstructured.NestedString(o.Object, "spec", "destination", "name")
	if o.GetAnnotations()["argocd.argoproj.io/skip-reconcile"] == "true" || server != "" && server != "https://kubernetes.default.svc" || name != "" && name != "in-cluster" {
		return nil
	}
	resources, known, _ := unstructured.NestedSlice(o.Object, "status", "resources")
	listed := map[manifest.ID]bool{}
	for _, r := range resources {
		if r, ok := r.(map[string]any); ok {
			text := func(key string) string { s, _ := r[key].(string); return s }
			listed[manifest.ID{Group: text("group"), Kind: text("kind"), Namespace: text("namespace"), Name: text("name")}] = true
		}
	}
	var all []manifest.ID
	for id, claim := range ids {
		if known && listed[id] || !known && (claim.Name == o.GetName() || claim.Name == o.GetNamespace()+"_"+o.GetName()) {
			all = append(all, id)
		}
	}
	return all
}

// releases returns, for each of the given objects, the Helm release that owns it, if Helm still keeps that release in a Secret or
// ConfigMap.
func (c *Counter) releases(ctx context.Context, ids map[manifest.ID]ownership.Claim) (map[manifest.ID]string, error) {
	by, asked := map[manifest.ID]string{}, map[ownership.Claim]bool{}
	for id, claim := range ids {
		if claim.Name == "" {
			continue
		}
		kept, known := asked[claim]
		for _, gk := range []schema.GroupKind{{Kind: "Secret"}, {Kind: "ConfigMap"}} {
			if known || kept {
				break
			}
			gvr, err := c.Surface.Resource(gk, "")
			if err != nil {
				return nil, err
			}
			selector := labels.Set{"owner": "helm", "name": claim.Name}.String() + ",status notin (uninstalled,superseded)"
			l, err := c.Metadata.Resource(gvr).Namespace(claim.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
			if err != nil {
				return nil, c.Explain(err, "list", api.ResourceName(c.Surface, gk))
			}
			kept = len(l.Items) > 0
		}
		if asked[claim] = kept; kept {
			by[id] = claim.By
		}
	}
	return by, nil
}
