package facts

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
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
	Revisions map[string]plan.LiveRevision
	// CanDeactivate is true if the API server lets an active definition become inactive. Then Crossplane deletes its CRD.
	CanDeactivate bool
}

// Expected returns the expected effects of the commit on Crossplane's objects, with their state in the cluster. A missing object is
// pending, because a step of this plan or a package creates it. Held and refused objects, and policies that are not in force, have
// no expected effects.
func Expected(want render.Desired, up Upstream, steps []plan.Step, force plan.PoliciesInForce) []plan.Effect {
	if want.Owner != render.OwnerCrossplane {
		return nil
	}
	held := map[manifest.ID]bool{} // held or refused
	packageHeld := false
	for _, s := range steps {
		if s.Action == plan.Hold || s.Err != nil {
			held[s.ID] = true
			packageHeld = packageHeld || crossplane.IsPackage(s.ID)
		}
	}
	var all []plan.Effect
	for _, d := range want.Definitions {
		if d.Active && !d.Paused {
			live, exists := up.Definitions[d.Name]
			packageWaits := packageHeld || d.Package.Pulled() && d.Package.Manual
			if !exists && packageWaits {
				continue // a held package may contain it, or its package waits for a person
			}
			if !live.Active && !IsActiveByItself(d) && force.Matching(d.Name) == "" {
				continue // no policy that may be written activates it
			}
			state, reason := stateOf(live.State(), WhyDefinition(live), exists, reason.NotBrought)
			all = append(all, plan.Effect{Kind: plan.Activate, On: crossplane.MRD(d.Name), State: state, Reason: reason})
		}
	}
	for _, p := range want.Policies {
		if !p.Paused {
			live, exists := up.Policies[p.Name]
			state, reason := stateOf(live.State(), WhyPolicy(live), exists, reason.NotThere)
			all = append(all, plan.Effect{Kind: plan.Accept, On: crossplane.MRAP(p.Name), State: state, Reason: reason})
		}
	}
	for _, o := range want.Objects {
		if crossplane.IsPackage(o.ID) {
			live, exists := up.Packages[o.ID]
			state, reason := stateOf(live.State(), WhyPackage(live), exists, reason.NotThere)
			all = append(all, plan.Effect{Kind: plan.Accept, On: o.ID, State: state, Reason: reason})
		}
	}
	return slices.DeleteFunc(all, func(e plan.Effect) bool { return held[e.On] })
}

// Activated returns the effects of a commit in a comparison: the activations, without Crossplane's progress.
func Activated(want render.Desired) []plan.Effect {
	if want.Owner != render.OwnerCrossplane {
		return nil
	}
	var all []plan.Effect
	for _, d := range want.Definitions {
		if d.Active && !d.Paused {
			all = append(all, plan.Effect{Kind: plan.Activate, On: crossplane.MRD(d.Name)})
		}
	}
	return all
}

// stateOf returns the state of an effect on one of Crossplane's objects, and why it does not hold yet. absent is the code for a
// missing object.
func stateOf(state crossplane.State, why reason.Reason, exists bool, absent reason.Code) (plan.EffectState, reason.Reason) {
	if !exists {
		return plan.Pending, absent.With()
	}
	switch state {
	case crossplane.Ready:
		return plan.Holds, reason.Reason{}
	case crossplane.Paused, crossplane.Blocked:
		return plan.Broken, why
	}
	return plan.Pending, why
}

// IsActiveByItself reports whether a definition is active regardless of policies.
func IsActiveByItself(d render.DecidedDefinition) bool {
	return slices.ContainsFunc(d.Reasons, func(r activation.Activator) bool { return r.Policy == "" })
}

// Activates returns the number of definitions that the plan newly activates. With done, it counts those whose CRDs Crossplane has
// made, otherwise those whose CRDs are still pending.
func Activates(p plan.Plan, done bool) int {
	state := plan.Pending
	if done {
		state = plan.Holds
	}
	n := 0
	for _, e := range p.Effects {
		if counts := e.State == state || !e.Awaited(); counts && e.Kind == plan.Activate && !p.WasActive[e.On.Name] { // no commit shows a state
			n++
		}
	}
	return n
}

// Active returns the names of the active definitions.
func (up Upstream) Active() map[string]bool {
	names := map[string]bool{}
	for name, d := range up.Definitions {
		if d.Active {
			names[name] = true
		}
	}
	return names
}

// Unexplained returns the definitions that are active in Crossplane but that nothing in the commit activates. The cause may be a
// policy that was narrowed, the default policy, or a person.
func Unexplained(want render.Desired, up Upstream) []string {
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

// NoteUnexplained returns the finding about definitions that are active in the cluster although no policy of the commit names them.
func NoteUnexplained(seen Observed) []manifest.Finding {
	names := unnamed(seen)
	if len(names) == 0 {
		return nil
	}
	f := manifest.Finding{
		Rule:     ruleUnexplained,
		About:    manifest.About{},
		Severity: manifest.Note,
		Message:  fmt.Sprintf("%s active in the cluster that no policy of this commit names, for example %s; activation is final", areActive(len(names)), names[0]),
		Fix:      "name them in a policy, or look for who activated them",
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

// NoteUnexplainedBefore is NoteUnexplained for a comparison: the definitions were active before the commit.
func NoteUnexplainedBefore(seen Observed) []manifest.Finding {
	names := unnamed(seen)
	if len(names) == 0 {
		return nil
	}
	return []manifest.Finding{{
		Rule:     ruleUnexplained,
		About:    manifest.About{},
		Severity: manifest.Note,
		Message:  fmt.Sprintf("%s active before this commit, and no policy of it names them, for example %s; activation is final", areActive(len(names)), names[0]),
		Fix:      "name them in a policy",
	}}
}

const ruleUnexplained = "active-unexplained"

// unnamed returns the unexplained definitions. If the sync deactivates, each of them has a step that explains it.
func unnamed(seen Observed) []string {
	if seen.Terms.Deactivate {
		return nil
	}
	return Unexplained(seen.Want, seen.Upstream)
}

// madeByCrossplane returns the names of the CRDs that this sync should make but that Crossplane makes.
func madeByCrossplane(seen Observed) []string {
	var names []string
	for _, a := range seen.Asked {
		if seen.Want.Owner == render.OwnerHeadgate && a.Definition != "" && seen.LeavesToPackage(a) {
			names = append(names, a.ID.Name)
		}
	}
	return names
}

// NoteOwner returns the finding about CRDs that Crossplane makes although Headgate is to make them.
func NoteOwner(seen Observed) []manifest.Finding {
	names := madeByCrossplane(seen)
	if len(names) == 0 {
		return nil
	}
	return []manifest.Finding{{
		Rule:     "made-by-crossplane",
		About:    manifest.About{},
		Severity: manifest.Warning,
		Message:  fmt.Sprintf("Crossplane makes %s that this sync should make, for example %s: the commit's copies are not applied", manifest.Count(len(names), "CRD"), names[0]),
		Fix:      "set crdOwner: Crossplane",
	}}
}

// NoteLeft returns a finding about CRDs without an owner after a handover. Crossplane takes over only the CRDs of active
// definitions.
func NoteLeft(names []string) manifest.Finding {
	return manifest.Finding{
		Rule:     plan.RuleLeft,
		About:    manifest.About{},
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

// IsInstalled reports whether a package revision controls an object.
func IsInstalled(o metav1.Object) bool {
	_, ok := crossplane.RevisionOf(o)
	return ok
}
