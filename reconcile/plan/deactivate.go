package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// Final is the guard that keeps activated definitions.
const Final GuardName = "final"

// An active definition without a policy and without objects is deactivated if the sync is configured so. If this sync
// makes the CRDs, it prunes the CRD. If Crossplane makes them, Active is final, and deactivation takes a detour:
//
//	MRD Active ─delete, orphaning─► no MRD ─touch the revision─► MRD Inactive ─delete its CRD─► done
//
// Each arrow is a step of a plan of its own, derived from the state of the cluster, so an interrupted process continues
// where it stopped. The conditions of a step are checked in the cluster once more right before it.
//
// If the API server lets an MRD become Inactive again, that is one write, and Crossplane deletes the CRD.

// A LiveRevision is a package revision in the cluster.
type LiveRevision struct {
	Package   manifest.ID // its Provider
	Active    bool
	SafeStart bool
	Lost      []string // missing definitions whose CRDs still exist
	Touched   string   // the value of TouchAnnotation
	Runtime   string   // the Deployment that runs its controllers, as namespace/name; "" if it is not known
}

// TouchAnnotation is set on a package revision to make Crossplane reconcile it.
const TouchAnnotation = "headgate.dev/touched"

// Restarts returns the providers whose controllers keep running for CRDs that this plan deletes.
func (p Plan) Restarts() []Restart {
	of := map[manifest.ID]Restart{}
	for _, s := range p.Steps {
		if s.ClosesKind() {
			r := of[s.Revision.Package]
			of[s.Revision.Package] = Restart{Package: s.Revision.Package, Deployment: s.Revision.Runtime, CRDs: r.CRDs + 1}
		}
	}
	delete(of, manifest.ID{}) // no package made these
	return slices.SortedFunc(maps.Values(of), func(a, b Restart) int { return a.Package.Compare(b.Package) })
}

// ClosesKind reports whether the step ends the deactivation of a definition: its CRD goes.
func (s Step) ClosesKind() bool {
	prunes := s.Deactivates && s.Action == Prune
	return prunes && (s.ID.IsCRD() || s.Phase == DoInactive)
}

// A Restart is the need to restart a provider.
type Restart struct {
	Package    manifest.ID `json:"package"`
	Deployment string      `json:"deployment,omitempty"` // as namespace/name; "" if it is not known
	CRDs       int         `json:"crds"`                 // that were deactivated
}

// Finding returns the need to restart as a finding.
func (r Restart) Finding() manifest.Finding {
	f := manifest.Finding{
		Rule:     RuleRestart,
		About:    manifest.About{Object: r.Package},
		Severity: manifest.Note,
		Message:  fmt.Sprintf("the provider %s still runs the controllers of %s; they stop when it restarts", r.Package.Name, manifest.Count(r.CRDs, "deactivated kind")),
		Fix:      "restart its Deployment after their CRDs are gone",
	}
	if namespace, name, ok := strings.Cut(r.Deployment, "/"); ok {
		f.Fix = fmt.Sprintf("after their CRDs are gone: kubectl -n %s rollout restart deployment %s", namespace, name)
	}
	return f
}

// OnlyDeactivating returns the part of the plan that deactivates definitions.
func (p Plan) OnlyDeactivating() Plan {
	p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool { return !s.Deactivates })
	p.Effects = slices.DeleteFunc(slices.Clone(p.Effects), func(e Effect) bool { return e.Awaited() && e.Kind != Deactivate })
	p.Gone, p.Stale, p.News, p.Record = nil, false, false, nil
	return p
}
