package write

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// touch makes Crossplane reconcile a package revision.
func (r *execution) touch(ctx context.Context, s plan.Step) error {
	_, err := r.merge(ctx, s.ID, inventory.Manager+"-activation", map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{plan.TouchAnnotation: s.Digest}},
	})
	return err
}

// activate makes a definition Active with a merge patch, as Crossplane's own policies do. If the state were applied and later left
// out of the apply, the definition would become Inactive.
func (r *execution) activate(ctx context.Context, s plan.Step, id manifest.ID) (*metav1.PartialObjectMetadata, error) {
	return r.merge(ctx, id, inventory.ActivationManager, map[string]any{
		"metadata": map[string]any{"uid": s.UID},
		"spec":     map[string]any{"state": "Active"},
	})
}

// deactivate makes exactly the definition that was observed inactive.
func (r *execution) deactivate(ctx context.Context, s plan.Step, id manifest.ID) error {
	_, err := r.merge(ctx, id, inventory.ActivationManager, map[string]any{
		"metadata": map[string]any{"uid": s.UID, "resourceVersion": s.ResourceVersion},
		"spec":     map[string]any{"state": "Inactive"},
	})
	if apierrors.IsConflict(err) {
		return errChanged
	}
	return err
}

// merge sends a merge patch for an object, and returns its metadata.
func (r *execution) merge(ctx context.Context, id manifest.ID, manager string, patch map[string]any) (*metav1.PartialObjectMetadata, error) {
	gvr, err := r.Surface.Resource(api.GroupKind(id), "")
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	var live *metav1.PartialObjectMetadata
	err = api.Retry(ctx, func() error {
		live, err = r.At(gvr, id).Patch(ctx, id.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: manager})
		return err
	})
	switch {
	case err == nil:
		return live, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, r.Refusal(err, "patch", id)
}

// mayDeactivate returns an error if a definition, or its CRD, must not be deactivated any more.
func (r *execution) mayDeactivate(ctx context.Context, id manifest.ID) error {
	if id.IsCRD() {
		if err := r.inactive(ctx, id.Name); err != nil {
			return err
		}
	}
	return r.unnamed(ctx, id.Name)
}

// inactive returns an error if the definition of a CRD to deactivate has become active: Crossplane would only make the CRD again.
func (r *execution) inactive(ctx context.Context, crd string) error {
	u, err := r.Read(ctx, crossplane.MRD(crd))
	if err != nil {
		return r.Refusal(err, "get", crossplane.MRD(crd))
	}
	if state, _, _ := unstructured.NestedString(u.Object, "spec", "state"); state == "Active" || u.GetDeletionTimestamp() != nil {
		return fmt.Errorf("its definition was activated meanwhile, so it was not deactivated")
	}
	return nil
}

// Restart restarts the pods of a Deployment, as kubectl rollout restart does.
func (c *Writer) Restart(ctx context.Context, namespace, name string) error {
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{"kubectl.kubernetes.io/restartedAt": time.Now().UTC().Format(time.RFC3339)},
	}}}})
	if err != nil {
		return err
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	err = api.Retry(ctx, func() error {
		_, err := c.Metadata.Resource(deployments).Namespace(namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: inventory.Manager})
		return err
	})
	return c.Explain(err, "patch", "the Deployment "+namespace+"/"+name)
}
