package write

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// release removes our marks from an object.
func (r *execution) release(ctx context.Context, s plan.Step, id manifest.ID) error {
	return r.amend(ctx, id, func(live *metav1.PartialObjectMetadata) ([]byte, error) {
		if live.UID != s.UID {
			return nil, nil // the present object is a new one, not ours
		}
		return s.Releasing(live, r.Sync)
	})
}

// amend patches the current object with this ID. It does nothing if there is no such object, or if patch returns no patch. If
// another writer is faster, it reads and tries again.
func (r *execution) amend(ctx context.Context, id manifest.ID, patch func(live *metav1.PartialObjectMetadata) ([]byte, error)) error {
	gvr, err := r.Surface.Resource(api.GroupKind(id), "")
	if err != nil {
		return err
	}
	const tries = 5
	for try := 1; ; try++ {
		var live *metav1.PartialObjectMetadata
		err := api.Retry(ctx, func() error {
			live, err = r.Get(ctx, r.Surface, id)
			return err
		})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return r.Refusal(err, "get", id)
		}
		body, err := patch(live)
		if body == nil || err != nil {
			return err
		}
		err = api.Retry(ctx, func() error {
			_, err := r.At(gvr, id).Patch(ctx, id.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: inventory.Manager})
			return err
		})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !apierrors.IsConflict(err):
			return r.Refusal(err, "patch", id)
		case try == tries:
			return fmt.Errorf("other writers keep changing the object: %w", err)
		}
	}
}

// disown removes an MRD from the owners of its CRD.
func (r *execution) disown(ctx context.Context, s plan.Step) error {
	return r.amend(ctx, plan.CRD(s.ID.Name), func(crd *metav1.PartialObjectMetadata) ([]byte, error) {
		owners := slices.DeleteFunc(slices.Clone(crd.OwnerReferences), func(o metav1.OwnerReference) bool { return o.UID == s.UID })
		if len(owners) == len(crd.OwnerReferences) {
			return nil, nil
		}
		return json.Marshal(map[string]any{"metadata": map[string]any{"uid": crd.UID, "resourceVersion": crd.ResourceVersion, "ownerReferences": owners}})
	})
}
