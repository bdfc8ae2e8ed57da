package demand

import (
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inServedVersion returns a definition or a policy of Crossplane in a version that the cluster serves. All versions that Headgate reads have the
// same fields. It returns every other object as it is.
func inServedVersion(kinds map[schema.GroupKind]plan.Kind, o render.Object) (render.Object, error) {
	if !crossplane.IsMRD(o.ID) && !crossplane.IsMRAP(o.ID) {
		return o, nil
	}
	served := kinds[o.ID.GroupKind()].Versions
	known := slices.IndexFunc(served, func(version string) bool { return slices.Contains(crossplane.MRDVersions(), version) })
	if _, version, _ := strings.Cut(o.APIVersion, "/"); known < 0 || slices.Contains(served, version) {
		return o, nil
	}
	u, err := o.Content()
	if err != nil {
		return o, err
	}
	u.SetAPIVersion(o.ID.Group + "/" + served[known])
	return o.With(u)
}
