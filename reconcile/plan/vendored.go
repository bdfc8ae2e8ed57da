package plan

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"
)

// A copy of a package may have a new storage version, or a newly served one. The installed package may differ from the copy,
// because publishing tools add a conversion webhook to CRDs that have none in Git. Therefore, if Crossplane makes the CRDs and no
// cluster is asked, such a move is a warning and not a breaking change.

// A StorageMove is a definition in a copy whose objects lose fields unless a webhook converts them.
type StorageMove struct {
	Name   string
	Needs  schema.Change // the change that needs a conversion
	Origin manifest.Origin
}

// vendoredMoves returns the storage moves of steps, for copies that Headgate applies itself.
func (p Plan) vendoredMoves() []StorageMove {
	var all []StorageMove
	for _, s := range p.Steps {
		if !s.Vendored || s.Action != Update || s.Live == nil || !s.Serves && len(s.Because) == 0 {
			continue
		}
		if _, needs, lost := s.compareConverted().Unconverting(); lost {
			all = append(all, StorageMove{Name: s.ID.Name, Needs: needs, Origin: s.Origin})
		}
	}
	return all
}

// unknownConversions returns a warning about storage moves.
func unknownConversions(all []StorageMove) []manifest.Finding {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b StorageMove) int { return a.Origin.Compare(b.Origin) })
	first := all[0]
	return []manifest.Finding{{
		Rule: "conversion-unknown", Severity: manifest.Warning, Origin: first.Origin,
		Message: fmt.Sprintf("%s in the tree's copy of a package would need a conversion webhook, for example %s because of its version %s, and the copy has none: "+
			"if what is installed has none either, fields are lost at the next write", manifest.Count(len(all), "definition"), first.Name, cmp.Or(first.Needs.Version, first.Needs.To)),
		Fix: fmt.Sprintf("see whether this prints Webhook: kubectl get crd %s -o jsonpath={.spec.conversion.strategy}; or have a Provider of this commit name the image, where its registry can be reached, so that the image is compared", first.Name),
	}}
}
