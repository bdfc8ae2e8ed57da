package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The codes of deactivation.
const (
	NotNamed         Code = "NotNamed"         // no policy names the definition
	ReturnsInactive  Code = "ReturnsInactive"  // Crossplane creates the deleted definition again, inactive
	NothingActivates Code = "NothingActivates" // nothing activates the definition of a CRD
	DeletingCRD      Code = "DeletingCRD"      // the CRD of the definition is being deleted
	ComesBack        Code = "ComesBack"        // Crossplane will create the definition again, inactive
	CRDGoes          Code = "CRDGoes"          // the CRD of the definition will be deleted
	RevisionRestores Code = "RevisionRestores" // the package revision that will create the definition again, inactive
	RevisionTouched  Code = "RevisionTouched"  // how many definitions Crossplane creates again
)

// An active definition without a policy and without objects is deactivated if the sync is configured so. If this sync
// makes the CRDs, it prunes the CRD. If Crossplane makes them, Active is final, and deactivation takes a detour:
//
//	MRD Active ─delete, orphaning─► no MRD ─touch the revision─► MRD Inactive ─delete its CRD─► done
//
// Each arrow is a step of a plan of its own, derived from the state of the cluster, so an interrupted process continues
// where it stopped. The conditions of a step are checked in the cluster once more right before it.

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

// Final is the guard that keeps activated definitions.
const Final GuardName = "final"

// deactivate adds the steps that deactivate definitions which Crossplane made active.
func (p *drafted) deactivate(seen Observed) {
	if !seen.Deactivates(p.Want) || p.Want.Owner != render.OwnerCrossplane || p.Want.Partial {
		return
	}
	up := seen.Upstream
	missing := map[string][]string{} // by revision
	add := func(s Step) {
		revision, _ := InstalledBy(up.Objects[s.ID])
		s.Revision = up.Revisions[revision]
		// Replace the step of the commit's copy, which only keeps an installed object.
		p.Steps = append(slices.DeleteFunc(p.Steps, func(kept Step) bool { return kept.ID == s.ID }), s)
	}
	for _, name := range p.unnamed(up) {
		d, exists := up.Definitions[name]
		crd, open := up.Objects[CRD(name)]
		switch {
		case open && crd.DeletionTimestamp != nil:
			p.expectInactive(name, DeletingCRD.With())
		case exists && d.Active:
			add(deactivating(crossplane.MRD(name), up.Objects[crossplane.MRD(name)], ReturnsInactive))
			p.expectInactive(name, ComesBack.With())
		case exists && open && !d.Paused && isInstalled(crd):
			add(deactivating(CRD(name), crd, NothingActivates))
			p.expectInactive(name, CRDGoes.With())
		case !exists && open && isInstalled(crd):
			revision, _ := crossplane.RevisionOf(crd)
			missing[revision] = append(missing[revision], name+"/"+string(crd.UID))
			p.expectInactive(name, RevisionRestores.With(revision))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		r := up.Revisions[name]
		// Ask for the same definitions only once, because Crossplane takes a while to make thousands of them.
		if token := inventory.Hash([]byte(strings.Join(missing[name], "\n"))); r.Touched != token {
			p.Steps = append(p.Steps, Step{
				Action: Update, Cause: Retain, Deactivates: true, ID: crossplane.ProviderRevision(name), APIVersion: crossplane.RevisionAPIVersion, Digest: token,
				Reason: RevisionTouched.With(len(missing[name])),
			})
		}
	}
}

// expectInactive adds the effect that a definition becomes inactive.
func (p *drafted) expectInactive(name string, reason Reason) {
	p.Effects = append(p.Effects, Effect{Kind: Deactivate, On: crossplane.MRD(name), State: Pending, Reason: reason})
}

// unnamed returns the definitions that no policy of the commit names, including those with only a CRD left. A paused policy keeps
// the definitions that it names.
func (p *drafted) unnamed(up Upstream) []string {
	declared, active := map[string]bool{}, map[string]bool{}
	for _, d := range p.Want.Definitions {
		declared[d.Name], active[d.Name] = true, d.Active
	}
	if p.Want.Live { // a definition may have come back since want was read from the cluster
		for name := range up.Definitions {
			declared[name] = true
		}
	}
	installs := map[manifest.ID]bool{}
	for _, o := range p.Want.Objects {
		installs[o.ID] = true
	}
	for _, r := range up.Revisions {
		if r.Active && (p.Want.Live || installs[r.Package]) {
			for _, name := range r.Lost {
				declared[name] = true
			}
		}
	}
	var names []string
	for name := range declared {
		if !active[name] && !p.Want.Names(name) && p.Want.Pauses(name) == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// InstalledBy returns the package revision that controls an object, which may be nil.
func InstalledBy(o *metav1.PartialObjectMetadata) (string, bool) {
	if o == nil {
		return "", false
	}
	return crossplane.RevisionOf(o)
}

// deactivating returns a step of a deactivation.
func deactivating(id manifest.ID, live *metav1.PartialObjectMetadata, why Code) Step {
	s := prune(id, inventory.Entry{}, live)
	s.Deactivates, s.Definition, s.Reason = true, true, why.With()
	return s
}

// pruneInstead returns a prune of a CRD that s would only keep because activation is final. If the prune is held and s is an
// update, that update is made instead unless a guard holds it, too.
func (s Step) pruneInstead(live *metav1.PartialObjectMetadata, e inventory.Entry) Step {
	taken := prune(s.ID, e, live)
	taken.Deactivates, taken.Definition, taken.Origin = true, true, s.Origin
	taken.Reason = NotNamed.With()
	if s.Action == Update {
		taken.Otherwise = &s
	}
	return taken
}

// concludeDeactivation handles deactivations that do not happen: their update replaces the hold if all guards of updates let it
// pass, and Crossplane is not expected to make the definition inactive.
func (p *drafted) concludeDeactivation(guards []Guard) {
	first := approvable(guards)
	for _, g := range guards {
		first[g.Name] = first[g.Name] || g.Phase == Settled // it ruled after the approvals
	}
	stays := map[string]bool{}
	taken := map[string]bool{}
	for i, s := range p.Steps {
		switch {
		case !s.Deactivates:
		case s.Action == Prune:
			taken[s.ID.Name] = true
		default:
			stays[s.ID.Name] = true
		}
		if s.Action != Prune && s.Otherwise != nil && s.Otherwise.Action == Update {
			update := *s.Otherwise
			update.Reason = s.Reason
			p.Steps[i] = update
		} else {
			p.Steps[i] = s.asks(first)
		}
	}
	p.Effects = slices.DeleteFunc(p.Effects, func(e Effect) bool { return e.Kind == Deactivate && stays[e.On.Name] })
	p.Retained = slices.DeleteFunc(p.Retained, func(name string) bool { return taken[name] })
}

// Restarts returns the providers whose controllers keep running for CRDs that this plan deletes.
func (p Plan) Restarts() []Restart {
	of := map[manifest.ID]Restart{}
	for _, s := range p.Steps {
		if s.Deactivates && s.Action == Prune && s.ID.IsCRD() && s.Revision.Package.Name != "" {
			r := of[s.Revision.Package]
			of[s.Revision.Package] = Restart{Package: s.Revision.Package, Deployment: s.Revision.Runtime, CRDs: r.CRDs + 1}
		}
	}
	return slices.SortedFunc(maps.Values(of), func(a, b Restart) int { return a.Package.Compare(b.Package) })
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
		Rule:     "restart-provider",
		Severity: manifest.Note,
		Message:  fmt.Sprintf("the provider %s still runs the controllers for %s that were deactivated; they stop when it restarts", r.Package.Name, manifest.Count(r.CRDs, "kind")),
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
