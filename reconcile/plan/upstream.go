package plan

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Upstream is the state of Crossplane's own objects. Its maps are nil if its API is not served.
type Upstream struct {
	Definitions map[string]crossplane.LiveDefinition // by name of the MRD
	Policies    map[string]crossplane.LivePolicy     // by name of the MRAP
	Packages    map[manifest.ID]crossplane.LivePackage

	// For a sync that deactivates: the metadata of definitions and of CRDs from packages, and the package revisions by name.
	Objects   map[manifest.ID]*metav1.PartialObjectMetadata
	Revisions map[string]LiveRevision
}

// The codes of effects that are pending for too long. The values are the time, and the reason of the wait.
const (
	PendingTooLong   Code = "PendingTooLong"   // of an effect
	NotSentInTime    Code = "NotSentInTime"    // of a create or an update
	NotDeletedInTime Code = "NotDeletedInTime" // of a prune
)

// expected returns the expected effects of the commit on Crossplane's objects, with their state in the cluster. A missing object is
// pending, because a step of this plan or a package creates it. Held and refused objects, and policies that are not in force, have
// no expected effects.
func expected(want render.Desired, up Upstream, steps []Step, force PoliciesInForce) []Effect {
	if want.Owner != render.OwnerCrossplane {
		return nil
	}
	held := map[manifest.ID]bool{} // held or refused
	packageHeld := false
	for _, s := range steps {
		if s.Action == Hold || s.Err != nil {
			held[s.ID] = true
			packageHeld = packageHeld || crossplane.IsPackage(s.ID)
		}
	}
	var all []Effect
	for _, d := range want.Definitions {
		if d.Active && !d.Paused {
			live, exists := up.Definitions[d.Name]
			if !exists && (packageHeld || d.Package.Pulled() && d.Package.Manual) {
				continue // a held package may contain it, or its package waits for a person
			}
			if !live.Active && !isActiveByItself(d) && force.Matching(d.Name) == "" {
				continue // no policy that may be written activates it
			}
			state, reason := stateOf(live.State(), WhyDefinition(live), exists, NotBrought)
			all = append(all, Effect{Kind: Activate, On: crossplane.MRD(d.Name), State: state, Reason: reason})
		}
	}
	for _, p := range want.Policies {
		if !p.Paused {
			live, exists := up.Policies[p.Name]
			state, reason := stateOf(live.State(), WhyPolicy(live), exists, NotThere)
			all = append(all, Effect{Kind: Accept, On: crossplane.MRAP(p.Name), State: state, Reason: reason})
		}
	}
	for _, o := range want.Objects {
		if crossplane.IsPackage(o.ID) {
			live, exists := up.Packages[o.ID]
			state, reason := stateOf(live.State(), WhyPackage(live), exists, NotThere)
			all = append(all, Effect{Kind: Accept, On: o.ID, State: state, Reason: reason})
		}
	}
	return slices.DeleteFunc(all, func(e Effect) bool { return held[e.On] })
}

// activated returns the effects of a commit in a comparison: the activations, without Crossplane's progress.
func activated(want render.Desired) []Effect {
	if want.Owner != render.OwnerCrossplane {
		return nil
	}
	var all []Effect
	for _, d := range want.Definitions {
		if d.Active && !d.Paused {
			all = append(all, Effect{Kind: Activate, On: crossplane.MRD(d.Name)})
		}
	}
	return all
}

// stateOf returns the state of an effect on one of Crossplane's objects, and why it does not hold yet. absent is the code for a
// missing object.
func stateOf(state crossplane.State, why Reason, exists bool, absent Code) (EffectState, Reason) {
	if !exists {
		return Pending, absent.With()
	}
	switch state {
	case crossplane.Ready:
		return Holds, Reason{}
	case crossplane.Paused, crossplane.Blocked:
		return Broken, why
	}
	return Pending, why
}

// isActiveByItself reports whether a definition is active regardless of policies.
func isActiveByItself(d render.DecidedDefinition) bool {
	return slices.ContainsFunc(d.Reasons, func(r activation.Activator) bool { return r.Policy == "" })
}

// Activates returns the number of definitions that the plan newly activates. With done, it counts those whose CRDs Crossplane has
// made, otherwise those whose CRDs are still pending.
func (p Plan) Activates(done bool) int {
	state := Pending
	if done {
		state = Holds
	}
	n := 0
	for _, e := range p.Effects {
		if e.Kind == Activate && (p.Stance.In(OnCommit) || e.State == state) && !p.WasActive[e.On.Name] {
			n++
		}
	}
	return n
}

// active returns the names of the active definitions.
func (up Upstream) active() map[string]bool {
	names := map[string]bool{}
	for name, d := range up.Definitions {
		if d.Active {
			names[name] = true
		}
	}
	return names
}

// overdue returns the plan after the time limit: late effects are broken, and steps that still wait for them have failed. So have
// late deletions.
func (p Plan) overdue(t Times, late map[manifest.ID]bool) Plan {
	after := t.Limit.Duration.String()
	p.Steps, p.Effects = slices.Clone(p.Steps), slices.Clone(p.Effects)
	for i, s := range p.Steps {
		if s.Waiting() && s.Err == nil && late[s.ID] {
			code := NotSentInTime
			if s.Action == Prune {
				code = NotDeletedInTime
			}
			p.Steps[i] = s.failed(code.With(after, s.Waits))
		}
		if s.isLate(t) {
			p.Steps[i] = s.failed(NotGone.With(after, s.Reason))
		}
	}
	for i, e := range p.Effects {
		if e.State == Pending && late[e.On] {
			p.Effects[i].State, p.Effects[i].Reason = Broken, PendingTooLong.With(after, e.Reason)
		}
	}
	return p
}

// unexplained returns the definitions that are active in Crossplane but that nothing in the commit activates. The cause may be a
// policy that was narrowed, the default policy, or a person.
func unexplained(want render.Desired, up Upstream) []string {
	if want.Owner != render.OwnerCrossplane {
		return nil
	}
	var names []string
	for _, d := range want.Definitions {
		if !d.Active && up.Definitions[d.Name].Active {
			names = append(names, d.Name)
		}
	}
	return names
}

func noteUnexplained(seen Observed) []manifest.Finding {
	names := unexplained(seen.Want, seen.Upstream)
	if len(names) == 0 || seen.Terms.Deactivate { // if the sync deactivates, each of them has a step that explains it
		return nil
	}
	f := manifest.Finding{
		Rule:     "active-unexplained",
		Severity: manifest.Note,
		Message:  fmt.Sprintf("%s active in the cluster that no policy of this commit names, for example %s; activation is final", areActive(len(names)), names[0]),
		Fix:      "name them in a policy, or look for who activated them",
	}
	if seen.Stance.In(OnCommit) {
		f.Message = fmt.Sprintf("%s active before this commit, and no policy of it names them, for example %s; activation is final", areActive(len(names)), names[0])
		f.Fix = "name them in a policy"
		return []manifest.Finding{f}
	}
	up := seen.Upstream
	for _, name := range slices.Sorted(maps.Keys(up.Policies)) {
		if up.Policies[name].Matches(names[0]) {
			f.Message += fmt.Sprintf(". The policy %s in the cluster activates that one", name)
			break
		}
	}
	return []manifest.Finding{f}
}

// madeByCrossplane returns the names of the CRDs that this sync should make but that Crossplane makes.
func madeByCrossplane(seen Observed) []string {
	var names []string
	for _, a := range seen.Asked {
		if seen.Want.Owner == render.OwnerHeadgate && a.Definition != "" && seen.leavesToPackage(a) {
			names = append(names, a.ID.Name)
		}
	}
	return names
}

func noteOwner(seen Observed) []manifest.Finding {
	names := madeByCrossplane(seen)
	if len(names) == 0 {
		return nil
	}
	return []manifest.Finding{{
		Rule:     "made-by-crossplane",
		Severity: manifest.Warning,
		Message:  fmt.Sprintf("Crossplane makes %s that this sync should make, for example %s: the commit's copies are not applied", manifest.Count(len(names), "CRD"), names[0]),
		Fix:      "set crdOwner: Crossplane",
	}}
}

// ruleLeft is the rule for a CRD without an owner after a handover.
const ruleLeft = "crd-left-alone"

// noteLeft returns a finding about CRDs without an owner after a handover. Crossplane takes over only the CRDs of active
// definitions.
func noteLeft(names []string) manifest.Finding {
	return manifest.Finding{
		Rule:     ruleLeft,
		Severity: manifest.Note,
		Message:  fmt.Sprintf("%s handed over to Crossplane that no policy of this commit names, for example %s: they stay as they are, and nothing updates them", manifest.Count(len(names), "CRD"), names[0]),
		Fix:      "name them in a policy",
	}
}

func areActive(n int) string {
	if n == 1 {
		return "1 definition is"
	}
	return fmt.Sprintf("%d definitions are", n)
}

func isInstalled(o metav1.Object) bool {
	_, ok := crossplane.RevisionOf(o)
	return ok
}
