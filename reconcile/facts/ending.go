package facts

import (
	"slices"

	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WhyDeleting returns what a deletion waits for, as far as the object itself shows.
func WhyDeleting(live *metav1.PartialObjectMetadata) reason.Reason {
	if live.GetDeletionTimestamp() == nil {
		return reason.NotDeleting.With()
	}
	since := live.GetDeletionTimestamp().UTC().Format("2006-01-02T15:04:05Z")
	finalizers := live.GetFinalizers()
	switch {
	case slices.Contains(finalizers, "customresourcecleanup.apiextensions.k8s.io"):
		return reason.DeletingInstances.With(since)
	case slices.ContainsFunc(finalizers, crossplane.IsFinalizer):
		return reason.DeletingByCrossplane.With(since, finalizers)
	case len(finalizers) > 0:
		return reason.DeletingFinalizers.With(since, finalizers)
	case live.Kind == "Namespace":
		return reason.DeletingContents.With(since)
	}
	return reason.Deleting.With(since)
}
