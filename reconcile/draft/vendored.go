package draft

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// vendoredMoves returns the storage moves of steps, for copies that Headgate applies itself.
func vendoredMoves(p plan.Plan) []facts.StorageMove {
	var all []facts.StorageMove
	for _, s := range p.Steps {
		isServed := s.Serves || len(s.Because) > 0
		if !s.Vendored || !isServed || s.Action != plan.Update {
			continue
		}
		if _, needs, lost := s.CompareConverted().Unconverting(); lost {
			all = append(all, facts.StorageMove{Name: s.ID.Name, Needs: needs, Origin: s.Origin})
		}
	}
	return all
}

// unknownConversions returns a warning about storage moves.
func unknownConversions(all []facts.StorageMove) []manifest.Finding {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b facts.StorageMove) int { return a.Origin.Compare(b.Origin) })
	first := all[0]
	return []manifest.Finding{{
		Rule: "conversion-unknown", Severity: manifest.Warning, Origin: first.Origin, About: manifest.About{},
		Message: fmt.Sprintf("%s in the tree's copy of a package would need a conversion webhook, for example %s because of its version %s, and the copy has none: "+
			"if what is installed has none either, fields are lost at the next write", manifest.Count(len(all), "definition"), first.Name, cmp.Or(first.Needs.Version, first.Needs.To)),
		Fix: fmt.Sprintf("see whether this prints Webhook: kubectl get crd %s -o jsonpath={.spec.conversion.strategy}; or have a Provider of this commit name the image, where its registry can be reached, so that the image is compared", first.Name),
	}}
}
