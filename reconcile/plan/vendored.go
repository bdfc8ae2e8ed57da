package plan

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A copy of a package in the tree may not be what is installed: programs that publish packages patch a
// conversion webhook onto CRDs that have none in Git. Where Crossplane makes the CRDs and no cluster is
// asked, a storage version that moves in such a copy is worth a warning, and no break.

// A storageMove is a definition of a copy that loses fields if nothing converts its objects.
type storageMove struct {
	name  string
	moves schema.Change
	at    manifest.Origin
}

// vendoredMoves are those of the steps, which are of copies that Headgate applies where nobody else does.
func (p Plan) vendoredMoves() []storageMove {
	var all []storageMove
	for _, s := range p.Steps {
		if !s.vendored || s.Action != Update || s.Live == nil || !s.Serves && len(s.Because) == 0 {
			continue
		}
		after, err := s.WillBe()
		if err != nil || !schema.Moves(s.Live, after) {
			continue
		}
		if _, moves, lost := schema.Compare(s.Live, after).Unconverting(); lost {
			all = append(all, storageMove{s.ID.Name, moves, s.Origin})
		}
	}
	return all
}

// copiedMoves are those of copies beside an object that has Crossplane install the package, where its image
// cannot be read. Nothing of the copy is applied.
func (b Baseline) copiedMoves(want render.Desired) []storageMove {
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
	var all []storageMove
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
		if err != nil || !schema.Moves(live, after) {
			continue
		}
		if _, moves, lost := schema.Compare(live, after).Unconverting(); lost {
			all = append(all, storageMove{d.Name, moves, is.Origin})
		}
	}
	return all
}

// converted is a definition of a copy as it is where a webhook converts its objects.
func converted(of FullDefinition) FullDefinition {
	return Lazy(func() (*unstructured.Unstructured, error) {
		u, err := of.Content()
		if err != nil {
			return nil, err
		}
		u = u.DeepCopy()
		return u, unstructured.SetNestedField(u.Object, "Webhook", "spec", "conversion", "strategy")
	})
}

// unknownConversions warns of copies whose definitions store objects in another version.
func unknownConversions(all []storageMove) []manifest.Finding {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b storageMove) int { return a.at.Compare(b.at) })
	first := all[0]
	return []manifest.Finding{{
		Rule: "conversion-unknown", Severity: manifest.Warning, Origin: first.at,
		Message: fmt.Sprintf("the storage version of %s in the tree's copy of a package moves, for example of %s from %s to %s, and the copy has no conversion webhook: "+
			"if what is installed has none either, fields are lost at the next write", manifest.Count(len(all), "definition"), first.name, first.moves.From, first.moves.To),
		Fix: fmt.Sprintf("see whether this prints Webhook: kubectl get crd %s -o jsonpath={.spec.conversion.strategy}; or have a Provider of this commit name the image, where its registry can be reached, so that the image is compared", first.name),
	}}
}
