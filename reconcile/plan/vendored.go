package plan

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"
)

// A StorageMove is a new storage version in a copy of a package. The installed package may differ from the copy:
// publishing tools patch a conversion webhook onto CRDs that have none in Git. So if Crossplane makes the CRDs and no
// cluster is asked, such a move is a warning, not a breaking change.

// A StorageMove is a definition of a copy that loses fields if nothing converts its objects.
type StorageMove struct {
	Name   string
	Moves  schema.Change
	Origin manifest.Origin
}

// vendoredMoves returns the storage moves of steps. These are copies that Headgate applies itself.
func (p Plan) vendoredMoves() []StorageMove {
	var all []StorageMove
	for _, s := range p.Steps {
		if !s.vendored || s.Action != Update || s.Live == nil || !s.Serves && len(s.Because) == 0 {
			continue
		}
		after, err := s.WillBe()
		if err != nil || !schema.Moves(s.Live, after) {
			continue
		}
		if _, moves, lost := schema.Compare(s.Live, after).Unconverting(); lost {
			all = append(all, StorageMove{Name: s.ID.Name, Moves: moves, Origin: s.Origin})
		}
	}
	return all
}

// unknownConversions warns of copies whose definitions store objects in another version.
func unknownConversions(all []StorageMove) []manifest.Finding {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b StorageMove) int { return a.Origin.Compare(b.Origin) })
	first := all[0]
	return []manifest.Finding{{
		Rule: "conversion-unknown", Severity: manifest.Warning, Origin: first.Origin,
		Message: fmt.Sprintf("the storage version of %s in the tree's copy of a package moves, for example of %s from %s to %s, and the copy has no conversion webhook: "+
			"if what is installed has none either, fields are lost at the next write", manifest.Count(len(all), "definition"), first.Name, first.Moves.From, first.Moves.To),
		Fix: fmt.Sprintf("see whether this prints Webhook: kubectl get crd %s -o jsonpath={.spec.conversion.strategy}; or have a Provider of this commit name the image, where its registry can be reached, so that the image is compared", first.Name),
	}}
}
