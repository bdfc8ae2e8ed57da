package observe

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The API server refuses to apply a custom resource while a managed fields entry names a version that its CRD no longer
// declares, and forgets the managers of entries whose version is no longer served. Headgate moves such entries to the version that it
// applies, for every manager. PatchMigrateToVersion of fluxcd/pkg/ssa would lose fields; see TestForeignMigration.

// migration returns the trial of an object whose managed fields name versions that are not served, or false if they name none. The
// dry run of an apply would fail, so the trial changes only the managed fields. An error is a problem with this object.
func (c *Reader) migration(live *unstructured.Unstructured, apiVersion string, id manifest.ID) (facts.Trial, bool, error) {
	if _, unsure := c.Surface.Broken[id.Group]; unsure || types_().IsGroupRegistered(id.Group) {
		return facts.Trial{}, false, nil // the API server migrates the built-in kinds
	}
	served := c.Surface.Versions[api.GroupKind(id)]
	vanished := func(e metav1.ManagedFieldsEntry) bool {
		gv, err := schema.ParseGroupVersion(e.APIVersion)
		return err == nil && gv.Group == id.Group && !slices.Contains(served, gv.Version)
	}
	entries := live.GetManagedFields()
	var from []string
	for _, e := range entries {
		if vanished(e) && !slices.Contains(from, api.VersionOf(e.APIVersion)) {
			from = append(from, api.VersionOf(e.APIVersion))
		}
	}
	if len(from) == 0 {
		return facts.Trial{}, false, nil
	}
	slices.Sort(from)
	moved, err := api.MovedTo(entries, apiVersion, vanished)
	if err != nil {
		return facts.Trial{Live: live}, false, fmt.Errorf("cannot migrate its managed fields: %w", err)
	}
	after := live.DeepCopy()
	after.SetManagedFields(moved)
	return facts.Trial{Live: live, After: after, Migrates: from}, true, nil
}
