package draft

import (
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deactivate adds the steps that deactivate definitions which Crossplane made active.
func (p *drafted) deactivate(seen facts.Observed) {
	if !Deactivates(seen, p.Want) || p.Want.Owner != render.OwnerCrossplane || p.Want.Partial {
		return
	}
	up := seen.Upstream
	missing := map[string][]string{} // by revision
	add := func(s plan.Step) {
		revision, _ := InstalledBy(up.Objects[s.ID])
		s.Revision = up.Revisions[revision]
		// Replace the step of the commit's copy, which only keeps an installed object.
		p.Steps = append(slices.DeleteFunc(p.Steps, func(kept plan.Step) bool { return kept.ID == s.ID }), s)
	}
	for _, name := range p.unnamed(up) {
		d, exists := up.Definitions[name]
		crd := up.Objects[plan.CRD(name)]
		revision, installed := InstalledBy(crd)
		switch {
		case crd != nil && crd.DeletionTimestamp != nil:
			p.expectInactive(name, reason.DeletingCRD.With())
		case d.Active:
			s, then := deactivation(name, up)
			add(s)
			p.expectInactive(name, then.With())
		case !installed, d.Paused:
		case !exists:
			missing[revision] = append(missing[revision], name+"/"+string(crd.UID))
			p.expectInactive(name, reason.RevisionRestores.With(revision))
		case up.CanDeactivate:
			p.expectInactive(name, reason.CrossplaneDeletesCRD.With())
		default:
			add(deactivating(plan.CRD(name), crd, reason.NothingActivates))
			p.expectInactive(name, reason.CRDGoes.With())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		r := up.Revisions[name]
		// Ask for the same definitions only once, because Crossplane takes a while to make thousands of them.
		if token := inventory.Hash([]byte(strings.Join(missing[name], "\n"))); r.Touched != token {
			p.Steps = append(p.Steps, plan.Step{
				Action: plan.Update, Cause: plan.Retain, Deactivates: true, ID: crossplane.ProviderRevision(name), APIVersion: crossplane.RevisionAPIVersion, Digest: token,
				Judged: plan.Judged{Reason: reason.RevisionTouched.With(len(missing[name]))},
			})
		}
	}
}

// deactivation returns the step that begins to deactivate an active definition, and what is expected after it.
func deactivation(name string, up facts.Upstream) (plan.Step, reason.Code) {
	s := deactivating(crossplane.MRD(name), up.Objects[crossplane.MRD(name)], reason.ReturnsInactive)
	if !up.CanDeactivate || s.Terminating {
		return s, reason.ComesBack
	}
	s.Phase, s.Reason = plan.DoInactive, reason.BecomesInactive.With()
	return s, reason.CrossplaneDeletesCRD
}

// expectInactive adds the effect that a definition becomes inactive.
func (p *drafted) expectInactive(name string, reason reason.Reason) {
	p.Effects = append(p.Effects, plan.Effect{Kind: plan.Deactivate, On: crossplane.MRD(name), State: plan.Pending, Reason: reason})
}

// unnamed returns the definitions that no policy of the commit names, including those with only a CRD left. A paused policy keeps
// the definitions that it names.
func (p *drafted) unnamed(up facts.Upstream) []string {
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
func deactivating(id manifest.ID, live *metav1.PartialObjectMetadata, why reason.Code) plan.Step {
	s := prune(id, inventory.Entry{}, live)
	s.Deactivates, s.Definition, s.Reason = true, true, why.With()
	return s
}

// pruneInstead returns a prune of a CRD that s would only keep because activation is final. If the prune is held and s is an
// update, that update is made instead unless a guard holds it, too.
func (p *drafted) pruneInstead(s plan.Step, live *metav1.PartialObjectMetadata, e inventory.Entry) plan.Step {
	if s.Action == plan.Update {
		p.Instead[s.ID] = s
	}
	taken := prune(s.ID, e, live)
	taken.Deactivates, taken.Definition, taken.Origin, taken.Reason = true, true, s.Origin, reason.NotNamed.With()
	taken.Revision.Package = p.Want.Provider(s.ID.Name)
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
		case s.Action == plan.Prune:
			taken[s.ID.Name] = true
		default:
			stays[s.ID.Name] = true
		}
		kept := p.AsksFor(s, first)
		if update := p.Instead[s.ID]; s.Action != plan.Prune && update.Action == plan.Update {
			kept = update
			kept.Reason = s.Reason
		}
		if p.Steps[i] = kept; kept.Change() != s.Change() {
			delete(p.Instead, s.ID)
		}
	}
	p.Effects = slices.DeleteFunc(p.Effects, func(e plan.Effect) bool { return e.Kind == plan.Deactivate && stays[e.On.Name] })
	p.Retained = slices.DeleteFunc(p.Retained, func(name string) bool { return taken[name] })
}
