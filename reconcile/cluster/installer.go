package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/cluster/count"
	"headgate.dev/headgate/reconcile/reason"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// InstallManager is the field manager of what an Installer applies.
const InstallManager = "headgate-install"

// An Installer reads, applies and deletes the objects of Headgate's own installation. It belongs to no sync: it has no inventory, and
// takes no lease.
type Installer struct {
	objects dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	words   func(reason.Reason) string
}

// NewInstaller returns an Installer, which explains reasons with words. It sends no request.
func NewInstaller(config *rest.Config, words func(reason.Reason) string) (*Installer, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1 // the API server limits us by priority and fairness
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return &Installer{objects: objects, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discover)), words: words}, nil
}

func (i *Installer) at(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := i.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	return i.objects.Resource(mapping.Resource).Namespace(namespace), nil
}

// Get returns an object as it is; nil if it does not exist, or if the API server does not serve its kind.
func (i *Installer) Get(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	at, err := i.at(u.GroupVersionKind(), u.GetNamespace())
	if meta.IsNoMatchError(err) {
		return nil, nil //nolint:nilnil // the comment says what it means
	}
	if err != nil {
		return nil, err
	}
	var live *unstructured.Unstructured
	err = api.Retry(ctx, func() error {
		live, err = at.Get(ctx, u.GetName(), metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // as above
	}
	return live, err
}

// List returns the objects of a kind in all namespaces; none if the API server does not serve the kind.
func (i *Installer) List(ctx context.Context, kind schema.GroupVersionKind, labels, fields string) ([]*unstructured.Unstructured, error) {
	at, err := i.at(kind, "")
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list *unstructured.UnstructuredList
	err = api.Retry(ctx, func() error {
		list, err = at.List(ctx, metav1.ListOptions{LabelSelector: labels, FieldSelector: fields})
		return err
	})
	if apierrors.IsNotFound(err) { // the CRD of the kind went
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make([]*unstructured.Unstructured, len(list.Items))
	for n := range list.Items {
		all[n] = &list.Items[n]
	}
	return all, nil
}

// Serves reports whether the API server serves a kind.
func (i *Installer) Serves(kind schema.GroupVersionKind) (bool, error) {
	_, err := i.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// Apply applies an object with server-side apply, and takes its fields from other field managers. It reports whether that changed the
// object.
func (i *Installer) Apply(ctx context.Context, u *unstructured.Unstructured) (changed bool, err error) {
	before, err := i.Get(ctx, u)
	if err != nil {
		return false, err
	}
	at, err := i.at(u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return false, err
	}
	var after *unstructured.Unstructured
	err = api.Retry(ctx, func() error {
		after, err = at.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: InstallManager, Force: true})
		return err
	})
	if err != nil {
		return false, err
	}
	return before == nil || before.GetResourceVersion() != after.GetResourceVersion(), nil
}

// Delete deletes an object that was read before. It is no error if the object is gone, or is another one by now.
func (i *Installer) Delete(ctx context.Context, live *unstructured.Unstructured) error {
	at, err := i.at(live.GroupVersionKind(), live.GetNamespace())
	if err != nil {
		return err
	}
	uid, how := live.GetUID(), metav1.DeletePropagationBackground
	err = api.Retry(ctx, func() error {
		return at.Delete(ctx, live.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &how})
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Wait waits until objects are ready according to their status. The error names those that are not.
func (i *Installer) Wait(ctx context.Context, objects []*unstructured.Unstructured, within time.Duration) error {
	return i.until(ctx, within, func() (string, error) {
		for _, u := range objects {
			live, err := i.Get(ctx, u)
			switch {
			case err != nil:
				return "", err
			case live == nil:
				return fmt.Sprintf("%s %s is gone", u.GetKind(), u.GetName()), nil
			}
			if why := count.NotReady(live); !why.None() {
				return fmt.Sprintf("%s %s is not ready: %s", u.GetKind(), u.GetName(), i.words(why)), nil
			}
		}
		return "", nil
	})
}

// Gone waits until objects no longer exist. The error names those that do.
func (i *Installer) Gone(ctx context.Context, objects []*unstructured.Unstructured, within time.Duration, why func(*unstructured.Unstructured) string) error {
	return i.until(ctx, within, func() (string, error) {
		var left []string
		for _, u := range objects {
			live, err := i.Get(ctx, u)
			if err != nil {
				return "", err
			}
			if live != nil && live.GetUID() == u.GetUID() {
				left = append(left, fmt.Sprintf("%s %s/%s is still there%s", u.GetKind(), u.GetNamespace(), u.GetName(), why(live)))
			}
		}
		return strings.Join(left, "; "), nil
	})
}

// until asks once a second until there is no objection.
func (i *Installer) until(ctx context.Context, within time.Duration, ask func() (objection string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for last := ""; ; api.Sleep(ctx, time.Second) {
		objection, err := ask()
		switch {
		case err == nil && objection == "":
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("after %s: %s", within, cmp.Or(objection, last)) // a first answer may take longer than the limit
		case err != nil:
			return err
		}
		last = objection
	}
}
