package baseline

import (
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// copiedMoves returns the storage moves in copies of packages that Crossplane installs from an image, if the image
// cannot be read. Headgate does not apply the copy.
func (b Baseline) copiedMoves(want render.Desired) []plan.StorageMove {
	before := map[string]render.DecidedDefinition{}
	for _, d := range b.Base.Definitions {
		before[d.Name] = d
	}
	read := map[string]bool{} // definitions of images, which decide
	for _, of := range want.Beside {
		for _, d := range of.Definitions {
			read[d.Name] = true
		}
	}
	var all []plan.StorageMove
	for _, d := range want.Definitions {
		if read[d.Name] {
			continue
		}
		old, known := before[d.Name]
		if !known || !d.Active || d.Document == nil || old.Document == nil || d.Package == nil || d.Package.Pulled() || d.Package.Installer.Name == "" {
			continue
		}
		was, err := old.MRD()
		if err != nil {
			continue // rendering says so
		}
		is, err := d.MRD()
		if err != nil || was.Digest == is.Digest {
			continue
		}
		live, after, err := beside(was, is)
		if err != nil || !schema.Crosses(live, after) {
			continue
		}
		if _, needs, lost := schema.Compare(live, after).Unconverting(); lost {
			all = append(all, plan.StorageMove{Name: d.Name, Needs: needs, Origin: is.Origin})
		}
	}
	return all
}

// converted is a definition of a copy as it is where a webhook converts its objects.
func converted(of plan.FullDefinition) plan.FullDefinition {
	return plan.Lazy(func() (*unstructured.Unstructured, error) {
		u, err := of.Content()
		if err != nil {
			return nil, err
		}
		u = u.DeepCopy()
		return u, unstructured.SetNestedField(u.Object, "Webhook", "spec", "conversion", "strategy")
	})
}
