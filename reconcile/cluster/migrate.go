package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The API server refuses to apply a custom resource while a managed fields entry names a version that its CRD no longer
// declares, and forgets the managers of entries whose version is no longer served. Headgate moves such entries to the version that it
// applies, for every manager. PatchMigrateToVersion of fluxcd/pkg/ssa would lose fields; see TestForeignMigration.

// migration returns the trial of an object whose managed fields name versions that are not served, or false if they name none. The
// dry run of an apply would fail, so the trial changes only the managed fields. An error is a problem with this object.
func (c *Cluster) migration(live *unstructured.Unstructured, apiVersion string, id manifest.ID) (facts.Trial, bool, error) {
	if _, unsure := c.surface.broken[id.Group]; unsure || types_().IsGroupRegistered(id.Group) {
		return facts.Trial{}, false, nil // the API server migrates the built-in kinds
	}
	served := c.surface.versions[groupKind(id)]
	vanished := func(e metav1.ManagedFieldsEntry) bool {
		gv, err := schema.ParseGroupVersion(e.APIVersion)
		return err == nil && gv.Group == id.Group && !slices.Contains(served, gv.Version)
	}
	entries := live.GetManagedFields()
	var from []string
	for _, e := range entries {
		if vanished(e) && !slices.Contains(from, versionOf(e.APIVersion)) {
			from = append(from, versionOf(e.APIVersion))
		}
	}
	if len(from) == 0 {
		return facts.Trial{}, false, nil
	}
	slices.Sort(from)
	moved, err := movedTo(entries, apiVersion, vanished)
	if err != nil {
		return facts.Trial{Live: live}, false, fmt.Errorf("cannot migrate its managed fields: %w", err)
	}
	after := live.DeepCopy()
	after.SetManagedFields(moved)
	return facts.Trial{Live: live, After: after, Migrates: from}, true, nil
}

// movedTo returns the entries with a new version for some of them. The API server keeps one entry of a manager for each
// operation, version and subresource, so entries that become alike are merged.
func movedTo(entries []metav1.ManagedFieldsEntry, apiVersion string, which func(metav1.ManagedFieldsEntry) bool) ([]metav1.ManagedFieldsEntry, error) {
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

// migrate writes the managed fields of a step to exactly the object that was observed.
func (r *execution) migrate(ctx context.Context, s plan.Step, id manifest.ID) error {
	gvr, err := r.surface.resource(groupKind(id), versionOf(s.After.GetAPIVersion()))
	if err != nil {
		return err
	}
	moves := func(e metav1.ManagedFieldsEntry) bool { return slices.Contains(s.Migrates, versionOf(e.APIVersion)) }
	err = r.sameButStatus(ctx, s, id, gvr, func(now metav1.Object) error {
		status, err := movedTo(onlyStatus(now.GetManagedFields()), s.After.GetAPIVersion(), moves)
		if err != nil {
			return err
		}
		body, err := managing(s, now.GetResourceVersion(), slices.Concat(withoutStatus(s.After.GetManagedFields()), status))
		if err != nil {
			return err
		}
		return retry(ctx, func() error {
			_, err := r.at(gvr, id).Patch(ctx, id.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: inventory.Manager})
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("cannot migrate its managed fields: %w", r.refusal(err, "patch", id))
	}
	return nil
}
