package write

import (
	"context"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// migrate writes the managed fields of a step to exactly the object that was observed.
func (r *execution) migrate(ctx context.Context, s plan.Step, id manifest.ID) error {
	gvr, err := r.Surface.Resource(api.GroupKind(id), api.VersionOf(s.After.GetAPIVersion()))
	if err != nil {
		return err
	}
	moves := func(e metav1.ManagedFieldsEntry) bool {
		return slices.Contains(s.Migrates, api.VersionOf(e.APIVersion))
	}
	err = r.sameButStatus(ctx, s, id, gvr, func(now metav1.Object) error {
		status, err := api.MovedTo(onlyStatus(now.GetManagedFields()), s.After.GetAPIVersion(), moves)
		if err != nil {
			return err
		}
		body, err := managing(s, now.GetResourceVersion(), slices.Concat(withoutStatus(s.After.GetManagedFields()), status))
		if err != nil {
			return err
		}
		return api.Retry(ctx, func() error {
			_, err := r.At(gvr, id).Patch(ctx, id.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: inventory.Manager})
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("cannot migrate its managed fields: %w", r.Refusal(err, "patch", id))
	}
	return nil
}
