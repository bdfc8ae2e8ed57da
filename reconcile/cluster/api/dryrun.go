package api

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Removed returns the object that the API server would store after the removal of fields.
func Removed(ctx context.Context, at dynamic.ResourceInterface, live *unstructured.Unstructured, fields *fieldpath.Set) (*unstructured.Unstructured, error) {
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
	ctx = Conceal(ctx, facts.MaskOf(live))
	var after *unstructured.Unstructured
	err = Retry(ctx, func() error {
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

// DryRun returns the object that an apply would leave, and sends nothing else. With force, it takes fields from other managers.
func DryRun(ctx context.Context, at dynamic.ResourceInterface, sent *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	ctx = Conceal(ctx, facts.MaskOf(sent))
	var after *unstructured.Unstructured
	err = Retry(ctx, func() error {
		after, err = at.Patch(ctx, sent.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{
			DryRun: []string{metav1.DryRunAll}, FieldManager: inventory.Manager, Force: &force,
		})
		return err
	})
	return after, err
}
