package api

import (
	"cmp"
	"errors"
	"slices"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MovedTo returns the entries with a new version for some of them. The API server keeps one entry of a manager for each
// operation, version and subresource, so entries that become alike are merged.
func MovedTo(entries []metav1.ManagedFieldsEntry, apiVersion string, which func(metav1.ManagedFieldsEntry) bool) ([]metav1.ManagedFieldsEntry, error) {
	var moved []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if which(e) {
			e.APIVersion = apiVersion
		}
		i := slices.IndexFunc(moved, func(o metav1.ManagedFieldsEntry) bool {
			return o.Manager == e.Manager && o.Operation == e.Operation && o.Subresource == e.Subresource && o.APIVersion == e.APIVersion
		})
		if i < 0 {
			moved = append(moved, e)
			continue
		}
		both, err := together(moved[i].FieldsV1, e.FieldsV1)
		if err != nil {
			return nil, err
		}
		moved[i].FieldsV1 = both
		if e.Time != nil && moved[i].Time.Before(e.Time) {
			moved[i].Time = e.Time
		}
	}
	return moved, nil
}

// together returns the fields of two entries.
func together(a, b *metav1.FieldsV1) (*metav1.FieldsV1, error) {
	if a == nil || b == nil {
		return cmp.Or(a, b), nil
	}
	one, failed := ssa.FieldsToSet(*a)
	other, err := ssa.FieldsToSet(*b)
	if err = errors.Join(failed, err); err != nil {
		return nil, err
	}
	both, err := ssa.SetToFields(*one.Union(&other))
	return &both, err
}
