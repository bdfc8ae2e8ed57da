package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// terminatingLimit is how long Crossplane may take to see that a definition is being deleted.
const terminatingLimit = time.Minute

// orphan deletes a definition, and not the CRD that Crossplane made of it, which is a decision of
// its own. The garbage collector takes the definition out of the owners of the CRD; that wakes
// Crossplane, which may not have seen yet that the definition goes, and makes it the owner once
// more. So the definition is kept until Crossplane has seen it:
//
//	our finalizer ─► delete, orphaning ─► Crossplane says Terminating ─► the CRD has no owner ─► no finalizer
//
// Whoever is killed in between finds our finalizer, as on anything that was protected.
func (r *pass) orphan(ctx context.Context, s plan.Step, id manifest.ID) error {
	keeps, err := r.wouldTakeAlong(ctx, s, id)
	switch {
	case err != nil:
		return err
	case keeps && !s.Unprotects:
		s.ResourceVersion, err = r.finalizers(ctx, s, id, plan.WithProtection)
	case !keeps && s.Unprotects:
		s.ResourceVersion, err = r.finalizers(ctx, s, id, plan.WithoutProtection)
	}
	if err != nil {
		return err
	}
	if err := r.remove(ctx, s, id, metav1.DeletePropagationOrphan); err != nil || !keeps {
		return err
	}
	if err := r.awaitTerminating(ctx, id); err != nil {
		return err
	}
	_, err = r.amend(ctx, plan.CRD(id.Name), func(crd *metav1.PartialObjectMetadata) ([]byte, error) {
		owners := slices.DeleteFunc(slices.Clone(crd.OwnerReferences), func(o metav1.OwnerReference) bool { return o.UID == s.UID })
		if len(owners) == len(crd.OwnerReferences) {
			return nil, nil
		}
		return json.Marshal(map[string]any{"metadata": map[string]any{"uid": crd.UID, "resourceVersion": crd.ResourceVersion, "ownerReferences": owners}})
	})
	if err != nil {
		return err
	}
	_, err = r.finalizers(ctx, s, id, plan.WithoutProtection)
	return err
}

// wouldTakeAlong says whether a CRD would go with a definition, if Crossplane made that its owner:
// it has no other one, as those of packages have, and Crossplane looks after the definition.
func (r *pass) wouldTakeAlong(ctx context.Context, s plan.Step, id manifest.ID) (bool, error) {
	crd, err := r.get(ctx, r.surface, plan.CRD(id.Name))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, r.refusal(err, "get", plan.CRD(id.Name))
	}
	if slices.ContainsFunc(crd.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID != s.UID }) {
		return false, nil
	}
	mrd, err := r.read(ctx, id)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, r.refusal(err, "get", id)
	}
	return crossplane.Condition(mrd, "Established").Status != "", nil
}

// awaitTerminating waits until Crossplane reports that a definition is being deleted. A Crossplane that does not run makes
// nothing the owner of anything; it is waited for once.
func (r *pass) awaitTerminating(ctx context.Context, id manifest.ID) error {
	for begun := time.Now(); !r.unresponsive.Load() && ctx.Err() == nil; sleep(ctx, 100*time.Millisecond) {
		mrd, err := r.read(ctx, id)
		if apierrors.IsNotFound(err) || err == nil && crossplane.Condition(mrd, "Established").Reason == "TerminatingManagedResource" {
			return nil
		}
		if time.Since(begun) > terminatingLimit {
			r.unresponsive.Store(true)
		}
	}
	return context.Cause(ctx)
}
