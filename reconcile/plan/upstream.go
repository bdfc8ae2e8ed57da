package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Upstream is what Crossplane has made of what it was given. Its maps are nil where
// its API is not served.
type Upstream struct {
	Definitions map[string]LiveDefinition // by name of the MRD
	Policies    map[string]LivePolicy     // by name of the MRAP
	Packages    map[manifest.ID]LivePackage

	// Of a sync that takes back, the metadata of definitions and of the CRDs of packages, and
	// their package revisions by name.
	Objects   map[manifest.ID]*metav1.PartialObjectMetadata
	Revisions map[string]LiveRevision
}

// A LiveDefinition is an MRD as it stands in the cluster.
type LiveDefinition struct {
	Active      bool
	Paused      bool
	Established metav1.ConditionStatus // "" where Crossplane has not said
	Message     string                 // why it is not established, as far as anybody says
	Revision    string                 // the package revision that controls it; "" where none does
}

// A LivePolicy is an MRAP as it stands in the cluster.
type LivePolicy struct {
	Patterns []string
	Paused   bool
	Healthy  metav1.ConditionStatus
	Message  string
}

// A LivePackage is a Provider, Configuration or Function as it stands in the cluster.
type LivePackage struct {
	Installed, Healthy metav1.ConditionStatus
	Paused             bool
	Reason             string // of the condition that matters: "AwaitingActivation" is healthy
	Message            string
	Image, Revision    string // that Crossplane looked at last; "" where it has not yet
	Behind             bool   // it is to be another image than that
}

// A CheckState is how far something is that must hold and that we do not write.
type CheckState string

// The states.
const (
	Holds   CheckState = "holds"
	Pending CheckState = "pending"
	Broken  CheckState = "broken"
)

// A Check is what Crossplane is to make of what we gave it or, of a sync that only looks,
// what somebody else is to apply.
type Check struct {
	ID     manifest.ID `json:"id"`
	State  CheckState  `json:"state"`
	Reason string      `json:"reason,omitempty"` // of one that does not hold

	Would   Action        `json:"would,omitempty"` // of what is not applied: what applying it does
	By      string        `json:"by,omitempty"`    // of what is not applied: who applies it, as far as is known
	Changes []diff.Change `json:"changes,omitempty"`
}

// MRD is the identity of the definition of a name.
func MRD(name string) manifest.ID {
	return manifest.ID{Group: "apiextensions.crossplane.io", Kind: "ManagedResourceDefinition", Name: name}
}

// MRAP is the identity of the policy of a name.
func MRAP(name string) manifest.ID {
	return manifest.ID{Group: "apiextensions.crossplane.io", Kind: "ManagedResourceActivationPolicy", Name: name}
}

// XRD is the identity of the composite resource definition of a name.
func XRD(name string) manifest.ID {
	return manifest.ID{Group: "apiextensions.crossplane.io", Kind: "CompositeResourceDefinition", Name: name}
}

// checks compares what Crossplane made with what the commit is to make it do. What is
// not there is pending: a step of this plan, or a package, brings it. Of what a guard
// holds, or the API server refuses, nothing is expected, nor of a policy that is not in force.
func checks(want render.Desired, up Upstream, steps []Step, force PoliciesInForce) []Check {
	if want.Owner != render.OwnerCrossplane {
		return nil
	}
	held := map[manifest.ID]bool{} // or refused
	packageHeld := false
	for _, s := range steps {
		if s.Action == Hold || s.Err != nil {
			held[s.ID] = true
			packageHeld = packageHeld || IsPackage(s.ID)
		}
	}
	var all []Check
	for _, d := range want.Definitions {
		if d.Active && !d.Paused {
			live, exists := up.Definitions[d.Name]
			if !exists && (packageHeld || d.Package.Pulled() && d.Package.Manual) {
				continue // that package may be the one that brings it, or waits for a person
			}
			if !live.Active && !isActiveByItself(d) && force.Matching(d.Name) == "" {
				continue // no policy activates it that is let through
			}
			state, reason := live.check(exists)
			all = append(all, Check{ID: MRD(d.Name), State: state, Reason: reason})
		}
	}
	for _, p := range want.Policies {
		if !p.Paused {
			live, exists := up.Policies[p.Name]
			state, reason := live.check(exists)
			all = append(all, Check{ID: MRAP(p.Name), State: state, Reason: reason})
		}
	}
	for _, o := range want.Objects {
		if IsPackage(o.ID) {
			live, exists := up.Packages[o.ID]
			state, reason := live.check(exists)
			all = append(all, Check{ID: o.ID, State: state, Reason: reason})
		}
	}
	return slices.DeleteFunc(all, func(c Check) bool { return held[c.ID] })
}

// isActiveByItself reports whether a definition is active whatever policies name.
func isActiveByItself(d render.Definition) bool {
	return slices.ContainsFunc(d.Reasons, func(r activation.Reason) bool { return r.Cause != activation.Matched })
}

// Activates is how many definitions Crossplane makes CRDs of because of the plan: which it has
// made where the plan was carried out, and is going to make where it was not.
func (p Plan) Activates(done bool) int {
	n := 0
	if p.Offline && p.Want.Owner == render.OwnerCrossplane {
		for _, d := range p.Want.Definitions {
			if d.Active && !d.Paused && !p.was[d.Name] {
				n++
			}
		}
		return n
	}
	state := Pending
	if done {
		state = Holds
	}
	for _, c := range p.Checks {
		if c.ID.IsMRD() && c.State == state && !p.was[c.ID.Name] && !p.back[c.ID.Name] {
			n++
		}
	}
	return n
}

// active are the definitions that are active.
func (up Upstream) active() map[string]bool {
	names := map[string]bool{}
	for name, d := range up.Definitions {
		if d.Active {
			names[name] = true
		}
	}
	return names
}

// Are says whether a check of the plan is in a state.
func (p Plan) Are(state CheckState) bool {
	return slices.ContainsFunc(p.Checks, func(c Check) bool { return c.State == state })
}

// overdue is the plan once the time of some of what is pending is over: those checks are
// broken, and those steps that wait have failed.
func (p Plan) overdue(after string, late map[manifest.ID]bool) Plan {
	p.Steps, p.Checks = slices.Clone(p.Steps), slices.Clone(p.Checks)
	for i, s := range p.Steps {
		if s.Waiting() && s.Err == nil && late[s.ID] {
			p.Steps[i].Err = fmt.Errorf("%s: after %s it still waits for %s", notDone(s), after, s.Waits)
		}
	}
	for i, c := range p.Checks {
		if c.State == Pending && late[c.ID] {
			p.Checks[i].State, p.Checks[i].Reason = Broken, "not after "+after+": "+c.Reason
		}
	}
	return p
}

// IsPackage says whether an object has Crossplane install a package.
func IsPackage(id manifest.ID) bool {
	return id.Group == "pkg.crossplane.io" && slices.Contains([]string{"Provider", "Configuration", "Function"}, id.Kind)
}

// NotReady is why a definition is not ready for what depends on it; "" where it is. One that is
// not active waits for a policy, and not for itself.
func (d LiveDefinition) NotReady() string {
	if !d.Active {
		return ""
	}
	_, why := d.check(true)
	return why
}

// NotReady is why a policy is not ready for what depends on it; "" where it is.
func (p LivePolicy) NotReady() string {
	_, why := p.check(true)
	return why
}

// NotReady is why a package is not ready for what depends on it; "" where it is.
func (p LivePackage) NotReady() string {
	_, why := p.check(true)
	return why
}

// check tells pending from blocked as Crossplane does: by Unknown against False, for the
// reason is the same.
func (d LiveDefinition) check(exists bool) (CheckState, string) {
	switch {
	case !exists:
		return Pending, "no package has brought this definition yet"
	case !d.Active:
		return Pending, "Crossplane has not activated it yet"
	case d.Established == metav1.ConditionTrue:
		return Holds, ""
	case d.Paused:
		return Broken, IsPaused
	case d.Established == metav1.ConditionFalse:
		return Broken, "blocked: " + cmp.Or(d.Message, "Crossplane does not say why; look at the events of the definition")
	case d.Message != "":
		return Pending, "Crossplane has applied its CRD: " + d.Message
	}
	return Pending, "Crossplane is establishing its CRD"
}

// IsPaused is why Crossplane does nothing about an object.
const IsPaused = "someone paused it in the cluster (crossplane.io/paused)"

func (p LivePolicy) check(exists bool) (CheckState, string) {
	switch {
	case !exists:
		return Pending, "it is not in the cluster yet"
	case p.Paused:
		return Broken, IsPaused
	case p.Healthy == metav1.ConditionTrue:
		return Holds, ""
	case p.Message != "":
		return Broken, p.Message
	}
	return Pending, "Crossplane has not looked at it yet"
}

// inactiveRevision is the reason of a package whose revision waits for a person.
const inactiveRevision = "InactivePackageRevision"

func (p LivePackage) check(exists bool) (CheckState, string) {
	switch {
	case !exists:
		return Pending, "it is not in the cluster yet"
	case p.Behind && p.Paused:
		return Broken, IsPaused
	case p.Behind && p.Installed == metav1.ConditionTrue: // what it says is of the version before
		return Pending, "Crossplane has not looked at this version yet"
	case p.Behind:
		return Pending, cmp.Or(p.Message, "Crossplane is installing it")
	case p.Installed == metav1.ConditionTrue && p.Healthy == metav1.ConditionTrue:
		return Holds, ""
	case p.Reason == "AwaitingActivation", p.Reason == inactiveRevision:
		return Holds, "" // of a manual revision, or of a provider that nothing is active of
	case p.Paused:
		return Broken, IsPaused
	}
	// Crossplane calls a package unhealthy that it has only begun with: time tells.
	return Pending, cmp.Or(p.Message, "Crossplane is installing it")
}

// unexplained are the definitions that Crossplane has active and that nothing in the
// commit activates: a policy that was narrowed, the default policy, or a hand did.
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

func noteUnexplained(names []string, seen Observed) manifest.Finding {
	f := manifest.Finding{
		Rule:     "active-unexplained",
		Severity: manifest.Note,
		Message:  fmt.Sprintf("%s active in the cluster that no policy of this commit names, for example %s; activation is final", areActive(len(names)), names[0]),
		Fix:      "name them in a policy, or look for who activated them",
	}
	if seen.Offline {
		f.Message = fmt.Sprintf("%s active before this commit, and no policy of it names them, for example %s; activation is final", areActive(len(names)), names[0])
		f.Fix = "name them in a policy"
		return f
	}
	up := seen.Upstream
	for _, name := range slices.Sorted(maps.Keys(up.Policies)) {
		if up.Policies[name].Matches(names[0]) {
			f.Message += fmt.Sprintf(". The policy %s in the cluster activates that one", name)
			break
		}
	}
	return f
}

// madeByCrossplane are the CRDs that this sync is to make and that Crossplane makes.
func madeByCrossplane(want render.Desired, steps []Step) []string {
	var names []string
	for _, s := range steps {
		if want.Owner == render.OwnerHeadgate && s.Guard == guardInstalled && s.Definition {
			names = append(names, s.ID.Name)
		}
	}
	return names
}

func noteOwner(names []string) manifest.Finding {
	return manifest.Finding{
		Rule:     "made-by-crossplane",
		Severity: manifest.Warning,
		Message:  fmt.Sprintf("Crossplane makes %s that this sync is to make, for example %s: the commit's copies are not applied", Plural(int64(len(names)), "CRD"), names[0]),
		Fix:      "set crdOwner: Crossplane",
	}
}

// ruleLeft is the rule of a CRD that a handover leaves to nobody.
const ruleLeft = "crd-left-alone"

// noteLeft tells of CRDs that a handover leaves to nobody: Crossplane takes up those whose
// definitions are active.
func noteLeft(names []string) manifest.Finding {
	return manifest.Finding{
		Rule:     ruleLeft,
		Severity: manifest.Note,
		Message:  fmt.Sprintf("%s handed over to Crossplane that no policy of this commit names, for example %s: they stay as they are, and nobody updates them", Plural(int64(len(names)), "CRD"), names[0]),
		Fix:      "name them in a policy",
	}
}

// Matches says whether a policy activates the definition of a name.
func (p LivePolicy) Matches(name string) bool {
	return !p.Paused && slices.ContainsFunc(p.Patterns, func(glob string) bool { return activation.Matches(glob, name) })
}

func areActive(n int) string {
	if n == 1 {
		return "1 definition is"
	}
	return fmt.Sprintf("%d definitions are", n)
}

// Installed says which package revision of Crossplane controls a live object.
func Installed(o metav1.Object) (revision string, ok bool) {
	ref := metav1.GetControllerOf(o)
	if ref == nil || !strings.HasPrefix(ref.APIVersion, "pkg.crossplane.io/") {
		return "", false
	}
	return ref.Name, true
}

func isInstalled(o metav1.Object) bool {
	_, ok := Installed(o)
	return ok
}
