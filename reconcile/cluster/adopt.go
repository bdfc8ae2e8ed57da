package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// takeOver returns the fields that an apply takes over from other managers of an object. after is the
// object after the apply; takeOver removes fields from it that have no manager then. Fields that the API server sets
// itself do not count as leftovers, whichever tool manages them.
func takeOver(ctx context.Context, at dynamic.ResourceInterface, live, after *unstructured.Unstructured, apiVersion string, how ownership.Taking) ownership.Takeover {
	t := ownership.UpdateOf(live, after, how).TakeOver(apiVersion).Reclaim(ownership.Applied(live)).Takeover
	if t.None() {
		return t
	}
	if len(t.Left) > 0 {
		if without, err := removed(ctx, at, live, t.Rest); err == nil { // an error means that the API server requires the fields
			t = t.Without(ownership.Returned(live.Object, without.Object, t.Rest))
		}
	}
	ownership.Remove(after.Object, t.Goes)
	if t.Forgets {
		unstructured.RemoveNestedField(after.Object, "metadata", "annotations", ownership.LastApplied)
	}
	return t
}

// removed returns the object that the API server would store after the removal of fields.
func removed(ctx context.Context, at dynamic.ResourceInterface, live *unstructured.Unstructured, fields *fieldpath.Set) (*unstructured.Unstructured, error) {
	without := live.DeepCopy()
	ownership.Remove(without.Object, fields)
	patch := mergePatch(live.Object, without.Object)
	metadata, _ := patch["metadata"].(map[string]any)
	metadata = cloned(metadata)
	metadata["uid"], metadata["resourceVersion"] = live.GetUID(), live.GetResourceVersion()
	patch["metadata"] = metadata
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	ctx = conceal(ctx, facts.MaskOf(live))
	var after *unstructured.Unstructured
	err = retry(ctx, func() error {
		after, err = at.Patch(ctx, live.GetName(), types.MergePatchType, body, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: inventory.Manager})
		return err
	})
	return after, err
}

func cloned(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return maps.Clone(m)
}

// mergePatch returns the JSON merge patch that turns from into to. It only removes and changes fields.
func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key, was := range from {
		is, there := to[key]
		a, isMap := was.(map[string]any)
		b, stays := is.(map[string]any)
		switch {
		case !there:
			patch[key] = nil
		case isMap && stays:
			if inner := mergePatch(a, b); len(inner) > 0 {
				patch[key] = inner
			}
		case !reflect.DeepEqual(was, is):
			patch[key] = is
		}
	}
	return patch
}

// leftovers returns an object as it is now, and as it would be without the fields that other tools left behind on it.
func (r respondent) leftovers(ctx context.Context, q question.Leftovers) (question.Cleared, error) {
	c, id := r.Cluster, r.actual(q.Of)
	live, err := c.existing(ctx, id)
	if err != nil || live == nil {
		return question.Cleared{}, err
	}
	why, err := c.reconcilers(ctx, map[manifest.ID]metav1.Object{id: live})
	if err != nil {
		return question.Cleared{}, err
	}
	if !why[id].None() {
		return question.Cleared{}, reason.CodedError{Reason: why[id]}
	}
	_, rest := ownership.Leftovers(live)
	if rest == nil || rest.Empty() {
		return question.Cleared{}, nil
	}
	gvr, err := c.surface.resource(groupKind(id), versionOf(live.GetAPIVersion()))
	if err != nil {
		return question.Cleared{}, err
	}
	after, err := removed(ctx, c.objects.Resource(gvr).Namespace(id.Namespace), live, rest)
	return question.Cleared{Live: live, After: after}, err
}

// applied returns an object after an apply.
func (r respondent) applied(ctx context.Context, q question.Applied) (*unstructured.Unstructured, error) {
	c, id := r.Cluster, r.actual(q.Of)
	content, err := q.Content.Content()
	if err != nil {
		return nil, err
	}
	gvr, err := c.surface.resource(groupKind(id), versionOf(content.GetAPIVersion()))
	if err != nil {
		return nil, err
	}
	return dryRun(ctx, c.objects.Resource(gvr).Namespace(id.Namespace), content, true)
}

// adopt writes the managed fields of a step. It tries again if a controller has changed only the status of the object since it was
// observed.
func (r *execution) adopt(ctx context.Context, s plan.Step, id manifest.ID) error {
	gvr, err := r.surface.resource(groupKind(id), versionOf(s.APIVersion))
	if err != nil {
		return err
	}
	err = r.sameButStatus(ctx, s, id, gvr, func(now metav1.Object) error {
		body, err := adoption(s, now.GetResourceVersion(), slices.Concat(withoutStatus(s.Adopts.Entries), onlyStatus(now.GetManagedFields())))
		if err != nil {
			return err
		}
		return retry(ctx, func() error {
			_, err := r.at(gvr, id).Patch(ctx, id.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: inventory.Manager})
			return err
		})
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("cannot take over its fields: %w", r.refusal(err, "patch", id))
}

// sameButStatus sends a write that names the resourceVersion of an object. It sends the write again as long as others have changed
// only the status of the object since it was observed, because controllers may write that many times a second. now is the object
// that the write is for.
func (r *execution) sameButStatus(ctx context.Context, s plan.Step, id manifest.ID, gvr schema.GroupVersionResource, send func(now metav1.Object) error) error {
	const tries = 20
	var now metav1.Object = s.Live
	for try := 1; ; try++ {
		err := send(now)
		if err == nil || ctx.Err() != nil || conflictIn(err) != nil || try == tries {
			return err
		}
		live, failed := r.at(gvr, id).Get(ctx, id.Name, metav1.GetOptions{})
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
	a, b := withoutStatus(before.GetManagedFields()), withoutStatus(now.GetManagedFields())
	return before.GetUID() == now.GetUID() && before.GetGeneration() == now.GetGeneration() && now.GetDeletionTimestamp() == nil &&
		reflect.DeepEqual(before.GetLabels(), now.GetLabels()) && reflect.DeepEqual(before.GetAnnotations(), now.GetAnnotations()) &&
		slices.EqualFunc(a, b, func(a, b metav1.ManagedFieldsEntry) bool {
			return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion && a.Time.Equal(b.Time) && a.FieldsV1.String() == b.FieldsV1.String()
		})
}

func withoutStatus(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(all), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource != "" })
}

func onlyStatus(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(all), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource == "" })
}
