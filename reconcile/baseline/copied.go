package baseline

import (
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// copiedMoves returns the storage moves in the tree's copies of packages, if Crossplane installs the packages from
// images that cannot be read. Headgate does not apply such a copy.
func (b Baseline) copiedMoves(want render.Desired) []facts.StorageMove {
	before := map[string]render.DecidedDefinition{}
	for _, d := range b.Base.Definitions {
		before[d.Name] = d
	}
	read := map[string]bool{} // by definitions in images, which take precedence
	for _, of := range want.Beside {
		for _, d := range of.Definitions {
			read[d.Name] = true
		}
	}
	var all []facts.StorageMove
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
			continue // rendering reports the error
		}
		is, err := d.MRD()
		if err != nil || was.Digest == is.Digest {
			continue
		}
		r, err := replacementOf(was, is)
		if err != nil {
			continue
		}
		if _, needs, lost := r.Difference.Unconverting(); lost {
			all = append(all, facts.StorageMove{Name: d.Name, Needs: needs, Origin: is.Origin})
		}
	}
	return all
}

// converted returns a definition of a copy as if a webhook converted its objects.
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
