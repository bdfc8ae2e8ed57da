package api

import (
	"context"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// Existing reads an object in full, and returns nil if there is none.
func (c *Client) Existing(ctx context.Context, id manifest.ID) (*unstructured.Unstructured, error) {
	u, err := c.Read(ctx, id)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no object is an answer
	}
	return u, err
}

// Read reads an object in full.
func (c *Client) Read(ctx context.Context, id manifest.ID) (u *unstructured.Unstructured, err error) {
	if err := unnameable(id); err != nil {
		return nil, err
	}
	err = c.Reading(ctx, c.Surface, GroupKind(id), func(gvr schema.GroupVersionResource) (err error) {
		u, err = c.Objects.Resource(gvr).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
		return err
	})
	return u, err
}

// Served lists the objects of a kind if it is served.
func (c *Client) Served(ctx context.Context, gk schema.GroupKind) ([]*metav1.PartialObjectMetadata, error) {
	if _, served := c.Surface.Kinds[gk]; !served {
		return nil, c.Surface.Known(gk)
	}
	return c.List(ctx, c.Surface, gk, "", "")
}

// Ours returns a selector for our label.
func (c *Client) Ours() string { return labels.Set{inventory.SyncLabel: c.Sync.Key()}.String() }

// List returns the current metadata of the objects of a kind.
func (c *Client) List(ctx context.Context, s *Surface, gk schema.GroupKind, namespace, selector string) ([]*metav1.PartialObjectMetadata, error) {
	var objects []*metav1.PartialObjectMetadata
	err := c.Reading(ctx, s, gk, func(gvr schema.GroupVersionResource) error {
		l, err := c.Metadata.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		objects = make([]*metav1.PartialObjectMetadata, len(l.Items))
		for i := range l.Items {
			objects[i] = Typed(&l.Items[i], gvr.GroupVersion(), gk.Kind)
		}
		return nil
	})
	return objects, err
}

// Get reads the metadata of an object.
func (c *Client) Get(ctx context.Context, s *Surface, id manifest.ID) (*metav1.PartialObjectMetadata, error) {
	if err := unnameable(id); err != nil {
		return nil, err
	}
	var found *metav1.PartialObjectMetadata
	err := c.Reading(ctx, s, GroupKind(id), func(gvr schema.GroupVersionResource) error {
		o, err := c.At(gvr, id).Get(ctx, id.Name, metav1.GetOptions{})
		if err == nil {
			found = Typed(o, gvr.GroupVersion(), id.Kind)
		}
		return err
	})
	return found, err
}

// unnameable returns the error that an object with such a name was not found. The metadata client does not check names, so a request
// for "../x" would be about something else. Older versions recorded such names in inventories.
func unnameable(id manifest.ID) error {
	if key, _ := id.Unnameable(); key == "" {
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: id.Group, Resource: id.Kind}, id.Name)
}

// At returns where the metadata of an object is read and written.
func (c *Client) At(gvr schema.GroupVersionResource, id manifest.ID) metadata.ResourceInterface {
	return c.Metadata.Resource(gvr).Namespace(id.Namespace)
}

// Typed sets the kind of the object on its metadata.
func Typed(o *metav1.PartialObjectMetadata, gv schema.GroupVersion, kind string) *metav1.PartialObjectMetadata {
	o.TypeMeta = metav1.TypeMeta{APIVersion: gv.String(), Kind: kind}
	return o
}

// IDOf returns the ID of an object that List or Get returned.
func IDOf(o *metav1.PartialObjectMetadata) manifest.ID {
	gk := o.GroupVersionKind().GroupKind()
	return manifest.ID{Group: gk.Group, Kind: gk.Kind, Namespace: o.Namespace, Name: o.Name}
}

// ResourceName returns the name of a kind in RBAC rules: "customresourcedefinitions.apiextensions.k8s.io".
func ResourceName(s *Surface, gk schema.GroupKind) string {
	k, served := s.Kinds[gk]
	if !served {
		return gk.String()
	}
	return schema.GroupResource{Group: gk.Group, Resource: k.Resource}.String()
}

// InParallel calls do for every item, up to limit at a time, and returns the results in the order of the items. The first error
// ends it.
func InParallel[T, R any](ctx context.Context, limit int, items []T, do func(context.Context, T) (R, error)) ([]R, error) {
	results := make([]R, len(items))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(limit)
	for i, item := range items {
		g.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			return engine.Caught("request", func() (err error) {
				results[i], err = do(ctx, item)
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return results, nil
}

// Each reads the objects of a kind in full, if it is served.
func (c *Client) Each(ctx context.Context, gk schema.GroupKind, do func(*unstructured.Unstructured)) error {
	return c.EachOf(ctx, c.Surface, gk, do)
}

// EachOf is Each for another surface than that of the pass.
func (c *Client) EachOf(ctx context.Context, s *Surface, gk schema.GroupKind, do func(*unstructured.Unstructured)) error {
	if _, served := s.Kinds[gk]; !served {
		return s.Known(gk)
	}
	var l *unstructured.UnstructuredList
	err := c.Reading(ctx, s, gk, func(gvr schema.GroupVersionResource) (err error) {
		l, err = c.Objects.Resource(gvr).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return c.Explain(err, "list", ResourceName(s, gk))
	}
	for i := range l.Items {
		do(&l.Items[i])
	}
	return nil
}
