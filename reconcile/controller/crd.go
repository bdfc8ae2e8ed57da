package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/render/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// crdOfSyncs is the name of the CRD of a Sync.
const crdOfSyncs = "syncs.headgate.dev"

var crds = kinds.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// A crdCheck compares the CRD of a Sync in the cluster with that of this version. The API server drops the fields that its CRD lacks, also
// when it reads a stored Sync, and each write of the Sync makes that final. A Sync without its suspend or allowedKinds would write what its
// author does not want. So while a field is missing, no Sync runs, and none is written.
type crdCheck struct {
	wanted   *unstructured.Unstructured // the CRD of this version
	dynamic  dynamic.Interface
	metadata metadata.Interface

	mu       sync.Mutex
	complete metav1.ObjectMeta // of the last one that lacked nothing
}

func newCRDCheck(config *rest.Config, wanted *unstructured.Unstructured) (*crdCheck, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	names, err := metadata.NewForConfig(config)
	return &crdCheck{wanted: wanted, dynamic: objects, metadata: names}, err
}

// An incompleteError is that a CRD lacks fields.
type incompleteError struct{ lacks []string }

func (e *incompleteError) Error() string {
	return fmt.Sprintf("the CRD %s lacks %s; nothing runs until the CRD of this version is applied", crdOfSyncs, strings.Join(e.lacks, ", "))
}

// err returns an incompleteError if the CRD lacks fields. Without a CRD there are no Syncs, so nothing is missing.
func (c *crdCheck) err(ctx context.Context) error {
	if c == nil {
		return nil
	}
	meta, err := c.metadata.Resource(crds).Get(ctx, crdOfSyncs, metav1.GetOptions{})
	if err != nil {
		return unlessGone(err)
	}
	c.mu.Lock()
	known := c.complete.UID == meta.UID && c.complete.Generation == meta.Generation
	c.mu.Unlock()
	if known {
		return nil
	}
	live, err := c.dynamic.Resource(crds).Get(ctx, crdOfSyncs, metav1.GetOptions{})
	if err != nil {
		return unlessGone(err)
	}
	if lacks := schema.Lacks(c.wanted, live); len(lacks) > 0 { //nolint:contextcheck,nolintlint // it waits for nothing, and the linter reports that only sometimes
		return &incompleteError{lacks}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complete = metav1.ObjectMeta{UID: live.GetUID(), Generation: live.GetGeneration()}
	return nil
}

func unlessGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("it is not known whether the CRD %s has all fields: %w", crdOfSyncs, err)
}

// wait waits until the CRD lacks nothing, also while the API server is away: a kubelet starts a process that ends again and again only
// every five minutes. says is called with what it waits for.
func (c *crdCheck) wait(ctx context.Context, says func(string)) error {
	for last := ""; ctx.Err() == nil; {
		err := c.err(ctx)
		if err == nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return err
		}
		what := "the API server: "
		if _, is := errors.AsType[*incompleteError](err); is {
			what = "another CRD: "
		}
		if now := what + err.Error(); last != now {
			last = now
			slog.Error("the CRD of Syncs has to be that of this version", "error", err)
			says(now)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPeriod):
		}
	}
	return nil
}

// checkCRD ends the term of this leader if the CRD lacks fields.
func (c *controller) checkCRD(ctx context.Context) error {
	err := c.crd.err(ctx)
	if _, is := errors.AsType[*incompleteError](err); is {
		c.quit(err)
	}
	return err
}
