package observe

import (
	"context"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// hidden returns the kinds of owned objects that are not served although their objects may still exist, each with the reason: the
// CRD or APIService of the kind exists, or cannot be read. It sends requests only if the kind of an owned object is not served.
// Objects of all other unserved kinds are gone.
func (c *Reader) hidden(ctx context.Context, owned map[manifest.ID]bool) map[schema.GroupKind]error {
	why := map[schema.GroupKind]error{}
	for id, ours := range owned {
		if _, served := c.Surface.Kinds[api.GroupKind(id)]; ours && !served {
			why[api.GroupKind(id)] = nil
		}
	}
	if len(why) == 0 {
		return nil
	}
	crds := c.unservedDefinitions(ctx, why)
	services, servicesErr := c.aggregated(ctx)
	for gk := range why {
		var because reason.Reason
		for _, crd := range crds[gk.Group] {
			if because.None() {
				because = crd.hides(gk)
			}
		}
		switch service, aggregated := services[gk.Group]; {
		case !because.None():
		case servicesErr != nil:
			because = reason.Of(servicesErr)
		case aggregated:
			because = reason.APIServiceEmpty.With(service)
		}
		if because.None() {
			delete(why, gk)
			continue
		}
		why[gk] = reason.CodedError{Reason: reason.KindHidden.With(gk.String(), because)}
	}
	return why
}

// A hiding is a CRD that serves no version, and may hide its objects.
type hiding struct {
	name string
	crd  *unstructured.Unstructured
	err  error // why the CRD cannot be read
}

// hides returns why a CRD may hide objects of a kind; no reason if it is not the CRD of that kind.
func (h hiding) hides(gk schema.GroupKind) reason.Reason {
	if h.err != nil {
		return reason.Of(h.err)
	}
	if kind, _, _ := unstructured.NestedString(h.crd.Object, "spec", "names", "kind"); kind != gk.Kind {
		return reason.Reason{}
	}
	switch {
	case h.crd.GetDeletionTimestamp() != nil:
		return reason.CRDTerminating.With(h.name)
	case len(api.ReadableVersions(h.crd)) == 0:
		return reason.CRDServesNothing.With(h.name)
	}
	for _, condition := range []string{"NamesAccepted", "Established"} {
		if c := crossplane.Condition(h.crd, condition); c.Status == "False" {
			return reason.CRDRefused.With(h.name, c.Message)
		}
	}
	return reason.CRDNotYetServed.With(h.name)
}

// unservedDefinitions returns, by group, the CRDs without any served version.
func (c *Reader) unservedDefinitions(ctx context.Context, of map[schema.GroupKind]error) map[string][]hiding {
	found := map[string][]hiding{}
	for gk := range of {
		if gk.Group != "" {
			found[gk.Group] = nil // kinds of the core group have no CRD
		}
	}
	if len(found) == 0 {
		return found
	}
	served := make(map[string]bool, len(c.Surface.Kinds))
	for gk, k := range c.Surface.Kinds {
		served[k.Resource+"."+gk.Group] = true
	}
	var all *metav1.PartialObjectMetadataList
	err := api.Retry(ctx, func() (err error) {
		all, err = c.Metadata.Resource(api.Definitions).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		for group := range found {
			found[group] = []hiding{{err: c.Explain(err, "list", api.Definitions.GroupResource().String())}}
		}
		return found
	}
	for _, item := range all.Items {
		_, group, _ := strings.Cut(item.Name, ".")
		if _, asked := found[group]; !asked || served[item.Name] {
			continue
		}
		h := hiding{name: item.Name}
		err := api.Retry(ctx, func() (err error) {
			h.crd, err = c.Objects.Resource(api.Definitions).Get(ctx, item.Name, metav1.GetOptions{})
			return err
		})
		if apierrors.IsNotFound(err) {
			continue
		}
		h.err = c.Explain(err, "get", "the CRD "+item.Name)
		found[group] = append(found[group], h)
	}
	for _, hidings := range found {
		slices.SortFunc(hidings, func(a, b hiding) int { return strings.Compare(a.name, b.name) })
	}
	return found
}

// aggregated returns, by group, the name of an APIService that another API server answers. It leaves out APIServices that
// this API server answers itself, because they come and go with the kinds that it serves.
func (c *Reader) aggregated(ctx context.Context) (map[string]string, error) {
	var list *unstructured.UnstructuredList
	err := api.Retry(ctx, func() (err error) {
		list, err = c.Objects.Resource(apiServices).List(ctx, metav1.ListOptions{})
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil // this API server has no aggregation
	case err != nil:
		return nil, c.Explain(err, "list", apiServices.GroupResource().String())
	}
	byGroup := map[string]string{}
	for _, item := range list.Items {
		service, aggregated, _ := unstructured.NestedMap(item.Object, "spec", "service")
		if group, _, _ := unstructured.NestedString(item.Object, "spec", "group"); aggregated && service != nil {
			byGroup[group] = item.GetName()
		}
	}
	return byGroup, nil
}
