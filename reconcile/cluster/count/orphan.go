package count

import (
	"context"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render/crossplane"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// departs returns whether deleting an MRD deletes its CRD. It does if the CRD has no other owner, such as a package
// revision, and if Crossplane has made the MRD an owner or may be about to. Crossplane does that while an MRD is Active, and
// reports it on the MRD only afterwards.
func (r respondent) departs(ctx context.Context, q question.Departs) (question.Departure, error) {
	c, id := r.Counter, q.Of
	var a question.Departure
	// Read the MRD first, so that no change that Crossplane made to the CRD before it reported Terminating is missed.
	mrd, err := c.Read(ctx, id)
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return a, c.Explain(err, "get", id.Brief())
	}
	crd, err := c.Get(ctx, c.Surface, plan.CRD(id.Name))
	if apierrors.IsNotFound(err) {
		return a, nil
	}
	if err != nil {
		return a, c.Explain(err, "get", plan.CRD(id.Name).Brief())
	}
	var uid types.UID // "" if the MRD is gone
	if !absent {
		uid = mrd.GetUID()
	}
	isMRD := func(o metav1.OwnerReference) bool { return o.UID == uid }
	others := slices.DeleteFunc(slices.Clone(crd.OwnerReferences), isMRD)
	if len(others) == 0 && madeByCrossplane(crd) {
		a.UID = crd.UID
	}
	if absent {
		return a, nil
	}
	established := crossplane.Condition(mrd, "Established")
	a.Owns = len(others) < len(crd.OwnerReferences)
	state, _, _ := unstructured.NestedString(mrd.Object, "spec", "state")
	if len(others) == 0 && (a.Owns || state == "Active" || established.Status != "") {
		a.Takes, a.UID = true, crd.UID
	}
	a.Established = established.Reason
	return a, nil
}

// madeByCrossplane reports whether Crossplane wrote an object.
func madeByCrossplane(o *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(o.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return strings.Contains(f.Manager, "crossplane") })
}
