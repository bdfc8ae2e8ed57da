package write

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// adopt writes the managed fields of a step. It tries again if a controller has changed only the status of the object since it was
// observed.
func (r *execution) adopt(ctx context.Context, s plan.Step, id manifest.ID) error {
	gvr, err := r.Surface.Resource(api.GroupKind(id), api.VersionOf(s.APIVersion))
	if err != nil {
		return err
	}
	err = r.sameButStatus(ctx, s, id, gvr, func(now metav1.Object) error {
		body, err := adoption(s, now.GetResourceVersion(), slices.Concat(withoutStatus(s.Adopts.Entries), onlyStatus(now.GetManagedFields())))
		if err != nil {
			return err
		}
		return api.Retry(ctx, func() error {
			_, err := r.At(gvr, id).Patch(ctx, id.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: inventory.Manager})
			return err
		})
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("cannot take over its fields: %w", r.Refusal(err, "patch", id))
}

// sameButStatus sends a write that names the resourceVersion of an object. It sends the write again as long as others have changed
// only the status of the object since it was observed, because controllers may write that many times a second. now is the object
// that the write is for.
func (r *execution) sameButStatus(ctx context.Context, s plan.Step, id manifest.ID, gvr schema.GroupVersionResource, send func(now metav1.Object) error) error {
	const tries = 20
	var now metav1.Object = s.Live
	for try := 1; ; try++ {
		err := send(now)
		if err == nil || ctx.Err() != nil || api.ConflictIn(err) != nil || try == tries {
			return err
		}
		live, failed := r.At(gvr, id).Get(ctx, id.Name, metav1.GetOptions{})
		switch {
		case failed != nil || live.ResourceVersion == now.GetResourceVersion():
			return err
		case !onlyStatusMoved(s.Live, live):
			return errChanged
		}
		now = live
	}
}

// adoption returns the JSON patch of an adoption.
func adoption(s plan.Step, version string, entries []metav1.ManagedFieldsEntry) ([]byte, error) {
	var more []ssa.JSONPatch
	if s.Adopts.Forgets {
		more = ssa.PatchRemoveAnnotations(s.Live, []string{ownership.LastApplied})
	}
	return managing(s, version, entries, more...)
}

// managing returns a JSON patch that changes the managed fields of exactly this version of an object.
func managing(s plan.Step, version string, entries []metav1.ManagedFieldsEntry, more ...ssa.JSONPatch) ([]byte, error) {
	type test struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
	patch := []any{
		test{"test", "/metadata/uid", string(s.Live.GetUID())},
		test{"test", "/metadata/resourceVersion", version},
		ssa.JSONPatch{Operation: "add", Path: "/metadata/managedFields", Value: entries}, // there may be none; add also replaces
	}
	for _, m := range more {
		patch = append(patch, m)
	}
	return json.Marshal(patch)
}

// onlyStatusMoved reports whether only the status of an object has changed since it was observed.
func onlyStatusMoved(before, now metav1.Object) bool {
	return now.GetDeletionTimestamp() == nil && reflect.DeepEqual(besideStatus(before), besideStatus(now))
}

// besideStatus returns the metadata that a write of the status does not change.
func besideStatus(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		UID: o.GetUID(), Generation: o.GetGeneration(), Labels: o.GetLabels(), Annotations: o.GetAnnotations(),
		ManagedFields: withoutStatus(o.GetManagedFields()),
	}
}

func withoutStatus(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(all), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource != "" })
}

func onlyStatus(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(all), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource == "" })
}
