package cluster

import (
	"context"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/preflight"
	"headgate.dev/headgate/render/crossplane"

	apps "k8s.io/api/apps/v1"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// This file reads what package preflight judges before the first pass. It changes nothing: a SelfSubjectAccessReview is a question.

// Release returns the version of the API server.
func (c *Cluster) Release(ctx context.Context) (string, error) {
	v, err := c.client.Discovery.ServerVersionWithContext(ctx)
	if err != nil {
		return "", c.client.Explain(err, "read", "the version of the API server")
	}
	return v.GitVersion, nil
}

// Crossplane returns what the cluster shows about its Crossplane: the labels and the image of its Deployment.
func (c *Cluster) Crossplane(ctx context.Context) (preflight.Crossplane, error) {
	s, err := c.client.Discover(ctx)
	if err != nil {
		return preflight.Crossplane{}, err
	}
	if err := s.Known(crossplane.KindMRD); err != nil {
		return preflight.Crossplane{}, err
	}
	found := preflight.Crossplane{Served: s.ServesCrossplane()}
	var all apps.DeploymentList
	err = c.client.Core.RESTClient().Get().AbsPath("/apis/apps/v1/deployments").
		VersionedParams(&metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=cloud-infrastructure-controller,app.kubernetes.io/part-of=crossplane"}, scheme.ParameterCodec).
		Do(ctx).Into(&all)
	switch {
	case err != nil:
		found.Hidden = c.client.Explain(err, "list", "deployments.apps").Error()
	case len(all.Items) == 0:
		found.Hidden = "no Deployment has the labels of its Helm chart"
	default:
		found.Version, found.From = versionIn(&all.Items[0])
	}
	return found, nil
}

// CRDs returns CRDs by their names, without those that do not exist.
func (c *Cluster) CRDs(ctx context.Context, names []string) ([]*unstructured.Unstructured, error) {
	found, err := api.InParallel(ctx, c.client.Concurrency, names, func(ctx context.Context, name string) (*unstructured.Unstructured, error) {
		u, err := c.client.Objects.Resource(api.Definitions).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return u, c.client.Explain(err, "get", "customresourcedefinitions.apiextensions.k8s.io "+name)
	})
	return slices.DeleteFunc(found, func(u *unstructured.Unstructured) bool { return u == nil }), err
}

// versionIn returns the version of Crossplane that a Deployment shows, and where. The image decides, because the label is that of
// the chart.
func versionIn(d *apps.Deployment) (version, from string) {
	name := "Deployment " + d.Namespace + "/" + d.Name
	for _, container := range d.Spec.Template.Spec.Containers {
		_, tag := crossplane.SplitImage(container.Image)
		if strings.HasPrefix(tag, "v") {
			return tag, "the image of " + name
		}
	}
	return d.Labels["app.kubernetes.io/version"], "a label of " + name
}

// Allowed asks the API server which rights this process has.
func (c *Cluster) Allowed(ctx context.Context, rights []preflight.Right) (map[preflight.Right]bool, error) {
	answers, err := api.InParallel(ctx, c.client.Concurrency, rights, c.allows)
	all := make(map[preflight.Right]bool, len(rights))
	for i, r := range rights {
		all[r] = err == nil && answers[i]
	}
	return all, err
}

func (c *Cluster) allows(ctx context.Context, r preflight.Right) (bool, error) {
	question := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorization.ResourceAttributes{
		Verb: r.Verb, Group: r.Group, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name,
	}}}
	var answer authorization.SelfSubjectAccessReview
	err := c.client.Core.RESTClient().Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").Body(question).Do(ctx).Into(&answer)
	if err != nil {
		return false, c.client.Explain(err, "create", "selfsubjectaccessreviews.authorization.k8s.io")
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}

// Orphans returns the CRDs whose controller, an object of Crossplane, does not exist, and the number of CRDs. It reads only metadata:
// that of all CRDs, and of the kinds that own them.
func (c *Cluster) Orphans(ctx context.Context) ([]preflight.Orphan, int, error) {
	s, err := c.client.Discover(ctx)
	if err != nil {
		return nil, 0, err
	}
	crds, err := c.client.List(ctx, s, api.GroupKind(plan.CRD("")), "", "")
	if err != nil {
		return nil, 0, c.client.Explain(err, "list", "customresourcedefinitions.apiextensions.k8s.io")
	}
	owners := map[schema.GroupKind]map[types.UID]bool{}
	var orphans []preflight.Orphan
	for _, crd := range crds {
		by := metav1.GetControllerOf(crd)
		if by == nil {
			continue
		}
		gk := schema.FromAPIVersionAndKind(by.APIVersion, by.Kind).GroupKind()
		if !crossplane.Serves(gk.Group) {
			continue
		}
		if owners[gk] == nil {
			if owners[gk], err = c.uids(ctx, s, gk); err != nil {
				return nil, 0, err
			}
		}
		if !owners[gk][by.UID] {
			orphans = append(orphans, preflight.Orphan{CRD: crd.Name, Owner: by.Kind + " " + by.Name})
		}
	}
	slices.SortFunc(orphans, func(a, b preflight.Orphan) int { return strings.Compare(a.CRD, b.CRD) })
	return orphans, len(crds), nil
}

// uids returns the UIDs of the objects of a kind; none if it is not served.
func (c *Cluster) uids(ctx context.Context, s *api.Surface, gk schema.GroupKind) (map[types.UID]bool, error) {
	all := map[types.UID]bool{}
	if _, served := s.Kinds[gk]; !served {
		return all, s.Known(gk)
	}
	objects, err := c.client.List(ctx, s, gk, "", "")
	if err != nil {
		return nil, c.client.Explain(err, "list", api.ResourceName(s, gk))
	}
	for _, o := range objects {
		all[o.UID] = true
	}
	return all, nil
}

// Kinds returns the kinds that the API server serves.
func (c *Cluster) Kinds(ctx context.Context) (map[metav1.GroupKind]plan.Kind, error) {
	s, err := c.client.Discover(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[metav1.GroupKind]plan.Kind, len(s.Kinds))
	for gk, k := range s.Kinds {
		all[metav1.GroupKind(gk)] = k
	}
	return all, nil
}
