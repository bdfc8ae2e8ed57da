package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Guard objects to prunes, or to creates and updates. It rules on one step at a time.
type Guard struct {
	Name       string
	Writes     bool // it rules on creates and updates, and not on prunes
	Approvable bool // it only asks whether something is meant: a person can let its steps pass
	Rule       Rule
}

// A Rule begins a guard's part of a plan and returns what rules on one step after the other. Steps of the case
// are as the guards before left them, and change with every ruling.
type Rule func(c Case) func(s Step) Ruling

// Each returns the rule of a guard that remembers nothing from one step to the next.
func Each(rule func(s Step, c Case) Ruling) Rule {
	return func(c Case) func(Step) Ruling {
		return func(s Step) Ruling { return rule(s, c) }
	}
}

func (g Guard) on(s Step) bool {
	if g.Writes {
		return s.Action == Create || s.Action == Update
	}
	return s.Action == Prune
}

// A Case is what a guard may look at beside the step.
type Case struct {
	Want    render.Desired
	Seen    Observed
	Passing int    // prunes that passed every guard before this one, and that nobody approved
	Steps   []Step // of the plan, as the guards before this one left them

	first order
	lost  []lostPackage
}

// Live is the live object of the step.
func (c Case) Live(s Step) *metav1.PartialObjectMetadata {
	if live, ok := c.Seen.Objects[s.ID]; ok {
		return live
	}
	return c.Seen.Upstream.Objects[s.ID]
}

// A Ruling is what a guard says. The zero value allows.
type Ruling struct {
	Answer Response
	Reason string     // what a person reads, and can act on; of what is allowed, a note
	Needs  []Question // the guard has to know these first; until then it holds, or notes that nobody knows
	Clears Clearing   // of what is held
}

// Clearing is whether what holds a step may go away without a person.
type Clearing int

// The clearings.
const (
	Stays           Clearing = iota // a person has to act
	ClearsWithOther                 // what was just deleted may take it along
	ClearsSoon                      // Crossplane takes it away in a moment
)

// A Response is allow, retain or hold.
type Response int

// The responses.
const (
	Allowed Response = iota
	Retained
	Held
	Reported // drift that stays as it is
)

// allowed lets a prune pass.
var allowed = Ruling{}

func held(format string, args ...any) Ruling {
	return Ruling{Answer: Held, Reason: fmt.Sprintf(format, args...)}
}

// Guarding says how strict the guards are. The zero value is the default.
type Guarding struct {
	MaxPrunes      int  // prunes of one pass; 0 is a fifth of what we own, at least 3 and at most 20
	MaxActivations int  // definitions that one policy or package may newly activate without naming them; 0 is 100
	PruneInstances bool // managed resources, XRs and claims may be pruned: the cloud resource goes too
	ReportDrift    bool // drift is said and not corrected
	OwnerIsSet     bool // a person said who makes the CRDs: a cluster that looks otherwise holds nothing
}

// Guards are those that every step passes, in the order in which they are named.
func (g Guarding) Guards() []Guard {
	return []Guard{
		{Name: "owner", Writes: true, Rule: Each(owner(g.OwnerIsSet))},
		{Name: "inventory", Writes: true, Rule: Each(notOurBooks)},
		{Name: guardLost, Writes: true, Approvable: true, Rule: Each(packageLost)},
		{Name: "paused", Writes: true, Rule: Each(paused)},
		{Name: "asked", Writes: true, Rule: Each(left)},
		{Name: "drift", Writes: true, Rule: Each(onlyReported(g.ReportDrift))},
		{Name: guardImpossible, Writes: true, Rule: Each(impossible)},
		{Name: "schema", Writes: true, Approvable: true, Rule: Each(schemas)},
		{Name: "fight", Writes: true, Rule: Each(fight)},
		{Name: guardFlood, Writes: true, Approvable: true, Rule: flood(g.MaxActivations)}, // it counts what the others let pass
		{Name: "owner", Rule: Each(owner(g.OwnerIsSet))},
		{Name: guardLost, Approvable: true, Rule: Each(packageLost)},
		{Name: guardOmitted, Rule: Each(omitted)},
		{Name: "asked", Rule: Each(asked)},
		{Name: "inventory", Rule: Each(home)},
		{Name: "paused", Rule: Each(paused)},
		{Name: guardFinal, Rule: Each(final)},
		{Name: guardNotOurs, Rule: Each(notOurs)},
		{Name: guardProtected, Rule: Each(protected)},
		{Name: "external", Approvable: true, Rule: Each(external(g.PruneInstances))},
		{Name: "in use", Rule: Each(inUse)},
		{Name: guardInside, Rule: Each(othersInside)},
		{Name: guardRebuilt, Approvable: true, Rule: Each(rebuilt)},
		{Name: "empty", Approvable: true, Rule: Each(empty)},
		{Name: "many", Approvable: true, Rule: Each(many(g.MaxPrunes))},
	}
}

// guard puts every step of the plan before every guard. What a person approved is put before
// them once more: it passes the guards that can be approved, and no others.
func (p *Plan) guard(seen Observed, guards []Guard) {
	before := slices.Clone(p.Steps)
	p.rule(seen, guards, nil)
	if seen.Looks {
		return
	}
	approved := p.approve(seen, guards)
	if len(approved) == 0 {
		return
	}
	held := make(map[manifest.ID]Step, len(approved))
	for _, s := range p.Steps {
		if approved[s.ID] {
			held[s.ID] = s
		}
	}
	p.Steps, p.open = before, nil
	p.rule(seen, guards, approved)
	p.pass(held)
}

// rule goes guard by guard, so that those who count see what the others let pass.
func (p *Plan) rule(seen Observed, guards []Guard, approved map[manifest.ID]bool) {
	for _, g := range guards {
		passing := 0
		for _, s := range p.Steps {
			if s.counts() && !approved[s.ID] {
				passing++
			}
		}
		rule := g.Rule(Case{Want: p.Want, Seen: seen, Passing: passing, Steps: p.Steps, first: p.first, lost: p.lost})
		for i, s := range p.Steps {
			if !g.on(s) || approved[s.ID] && g.Approvable {
				continue
			}
			r := rule(s)
			if !seen.Offline || seen.Counts {
				p.open = append(p.open, r.Needs...)
			}
			switch r.Answer {
			case Allowed:
				p.Steps[i].Reason = cmp.Or(s.Reason, r.Reason)
				continue
			case Retained:
				s.Action, s.Cause = Keep, Retain
			case Reported:
				s.Action, s.Would, s.Err = Keep, s.Action, nil
			case Held: // whoever acts on it reads what else is wrong after that
				s.Action, s.Would, s.Err = Hold, s.Action, nil
			}
			s.Guard, s.Reason, s.Clears = g.Name, r.Reason, r.Clears
			p.Steps[i] = s
		}
	}
}

// onlyReported keeps what somebody changed as it is, where the sync reports drift. What only
// lost our name in its managed fields, as a value that was put back by hand, has not
// drifted: it gets the name back.
func onlyReported(reports bool) func(Step, Case) Ruling {
	return func(s Step, _ Case) Ruling {
		switch {
		case !reports || s.Cause != Drift, s.Action == Update && s.Err == nil && len(s.Changes()) == 0:
			return allowed
		case s.Err != nil:
			return Ruling{Answer: Reported, Reason: "drift is reported, not corrected: " + s.Err.Error()}
		}
		return Ruling{Answer: Reported, Reason: "drift is reported, not corrected"}
	}
}

// optOuts are annotations by which a person keeps an object out of a prune. The value
// "*" is any.
var optOuts = []struct{ key, value string }{
	{"client.lifecycle.config.k8s.io/deletion", "detach"},
	{"cli-utils.sigs.k8s.io/on-remove", "keep"},
	{"helm.sh/resource-policy", "keep"},
	{"kustomize.toolkit.fluxcd.io/prune", "disabled"},
	{"kustomize.toolkit.fluxcd.io/reconcile", "disabled"},
	{"argocd.argoproj.io/sync-options", "Prune=false"},
}

// lettingGo reports whether a prune only takes our finalizer from an object that is being deleted.
func lettingGo(s Step, c Case) bool {
	return s.Unprotects && c.Live(s).GetDeletionTimestamp() != nil
}

// asked retains what someone asked us, on the object, never to prune.
func asked(s Step, c Case) Ruling {
	if reason, asked := kept(c.Seen.Inventory.Entries[s.ID].Policy, c.Live(s)); asked && !lettingGo(s, c) {
		return Ruling{Answer: Retained, Reason: reason}
	}
	return allowed
}

// Kept says whether a live object asks never to be pruned.
func Kept(o metav1.Object) bool {
	_, asked := kept(Default, o)
	return asked
}

func kept(policy Policy, o metav1.Object) (reason string, asked bool) {
	for _, said := range []Policy{policy, Policy(o.GetAnnotations()[PolicyAnnotation])} {
		if said == Undeletable || said == Observable {
			return fmt.Sprintf("its management policy %s asks for it", said), true
		}
	}
	for _, out := range optOuts {
		switch { // Flux reads labels as well, in upper and lower case
		case saysSo(o.GetAnnotations(), out.key, out.value):
			return fmt.Sprintf("its annotation %s: %s asks for it", out.key, out.value), true
		case saysSo(o.GetLabels(), out.key, out.value):
			return fmt.Sprintf("its label %s: %s asks for it", out.key, out.value), true
		}
	}
	return "", false
}

// left retains what someone asked us, on the object or in the commit, not to write. Where it was
// the commit that asked for it, the commit can take it back.
func left(s Step, c Case) Ruling {
	live := c.Live(s)
	for _, be := range render.LeaveBe {
		key, value := be.Key, be.Value
		wanted := saysSo(s.asks, key, value)
		if live == nil {
			if wanted && !be.Made {
				return Ruling{Answer: Retained, Reason: fmt.Sprintf("%s: %s in the commit asks not to make it", key, value)}
			}
			continue
		}
		annotated, labelled := saysSo(live.GetAnnotations(), key, value), saysSo(live.GetLabels(), key, value)
		ours := c.Seen.Offline || sentByUs(live, c.Seen.Inventory.Entries[s.ID].Foreign, annotated, key)
		switch {
		case annotated && (wanted || !ours):
			return Ruling{Answer: Retained, Reason: fmt.Sprintf("its annotation %s: %s asks not to update it", key, value)}
		case labelled && (wanted || !ours):
			return Ruling{Answer: Retained, Reason: fmt.Sprintf("its label %s: %s asks not to update it", key, value)}
		case wanted:
			return Ruling{Answer: Retained, Reason: fmt.Sprintf("%s: %s in the commit asks not to update it", key, value)}
		}
	}
	return allowed
}

// saysSo says whether a key has a value, or has it among others.
func saysSo(keys map[string]string, key, value string) bool {
	for k, v := range keys {
		if !strings.EqualFold(k, key) {
			continue
		}
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(part), value) {
				return true
			}
		}
	}
	return false
}

// pauseAnnotation stops Crossplane from acting on an object.
const pauseAnnotation = "crossplane.io/paused"

// paused leaves what somebody else paused exactly as it is: people pause what they are
// working on.
func paused(s Step, c Case) Ruling {
	live := c.Live(s)
	switch {
	case live == nil || live.GetAnnotations()[pauseAnnotation] != "true" || c.Seen.Offline || sentByUs(live, c.Seen.Inventory.Entries[s.ID].Foreign, true, pauseAnnotation):
		return allowed
	case s.Action == Prune:
		return held("%s; take the annotation out when whoever set it is done", isPaused)
	}
	return Ruling{Answer: Retained, Reason: isPaused + ": it stays as it is until they take that out"}
}

const guardRebuilt = "rebuilt"

// rebuilt holds what the sync is taken to own only because of the marks on it. A person looks at it
// and approves that it is pruned, or has Headgate release it.
func rebuilt(s Step, c Case) Ruling {
	have := c.Seen.Inventory
	switch {
	case have.Entries[s.ID].Rebuilt:
		return held("the inventory was lost, and only the marks on the object tell that this sync applied it; approve the prune, or run 'headgate release --rebuilt' to keep such objects")
	case have.Rebuilt && c.Seen.Ends != NoEnding:
		return held("a part of the inventory was lost and is being rebuilt; look at what is listed, and destroy once more")
	case have.Rebuilt:
		return Ruling{Answer: Retained, Reason: "a part of the inventory was lost and is being rebuilt; the next pass decides"}
	}
	return allowed
}

const guardNotOurs = "not ours"

// notOurs holds what is not the object that we applied.
func notOurs(s Step, c Case) Ruling {
	live := c.Live(s)
	if c.Seen.Offline {
		return allowed // what was applied from a commit is ours
	}
	if s.TakesBack && c.Want.Owner == render.OwnerCrossplane {
		return allowed // nobody owns it but Crossplane, from which it is taken back
	}
	if by := c.Seen.claim(s.ID, live).By; by != "" {
		return held("%s owns it; delete it there", by)
	}
	if c.Seen.isObserved(s.ID, live) {
		return allowed // it was never ours, and a person wrote that it goes with the commit
	}
	if !Ours(live, c.Seen.Inventory.Sync) {
		return held("it does not carry the mark of this sync any more; delete it by hand if nobody needs it")
	}
	switch uid := c.Seen.Inventory.Entries[s.ID].UID; {
	case c.Seen.Inventory.Holds(s.ID, live):
		return allowed
	case uid == "":
		return held("it carries the marks of this sync, and nothing proves that Headgate applied it; delete it by hand if nobody needs it")
	}
	return held("it is another object than the one that was applied (its UID changed); delete it by hand if nobody needs it")
}

const guardProtected = "protected"

// protected holds what Crossplane's Usages protect: what one names, labelled already or not, and
// what is labelled, whoever names it.
func protected(s Step, c Case) Ruling {
	if goesFirst(s.ID, c) {
		return allowed
	}
	for _, o := range c.Want.Objects {
		if !isUsage(o.ID.GroupKind()) {
			continue
		}
		if u, err := o.Content(); err != nil || UsageNames(u, s.ID, c.Live(s).GetLabels()) {
			return held("the %s of this commit protects it; remove that first, or declare the object again", o.ID)
		}
	}
	labelled := c.Live(s).GetLabels()["crossplane.io/in-use"] == "true"
	if c.Seen.Offline || !slices.ContainsFunc(Usages, func(gk schema.GroupKind) bool { _, served := c.Seen.Kinds[gk]; return served }) {
		if labelled {
			return held("a Crossplane Usage protects it (label crossplane.io/in-use); delete the Usage first")
		}
		return allowed
	}
	q := Question{Ask: Protectors, Of: s.ID}
	a, answered := c.Seen.Answers[q]
	switch {
	case !answered:
		r := held("it has not been read whether a Crossplane Usage protects it")
		r.Needs = []Question{q}
		return r
	case a.Unknown != "":
		return held("whether a Crossplane Usage protects it cannot be read (%s)", a.Unknown)
	case a.Count > 0:
		return held("the %s protects it; delete that first", a.Example)
	case labelled:
		r := held("it is labelled crossplane.io/in-use, and no Usage names it; Crossplane takes the label off in a moment; if it stays, take it off by hand")
		r.Clears = ClearsSoon
		return r
	}
	return allowed
}

// MayClear reports whether what holds a step may go away without a person: an object that was just deleted takes
// others along, and Crossplane takes its label off what a Usage protected.
func (s Step) MayClear() bool { return s.Action == Hold && s.Clears != Stays }

// inUse holds what live objects would go with, or would be broken without.
func inUse(s Step, c Case) Ruling {
	if !hasDependents(s.ID) {
		return allowed
	}
	going, all := c.users(s.ID)
	if all && !slices.ContainsFunc(going, func(by Step) bool { return by.Action != Prune }) {
		return Ruling{Reason: plural(int64(len(going)), "object") + " of it go first"}
	}
	format := "%s would be deleted with it%s; delete them first"
	switch s.ID.Kind {
	case "Composition", "Function":
		format = "%s would be broken without it%s; have them use another one, or delete them first"
	case "Configuration": // its XRDs go, and its Compositions
		format = "%s would be deleted, or broken, without it%s; delete them first"
	}
	r := counted(Question{Ask: Dependents, Of: s.ID}, c, format, "live object", going...)
	r.Clears = ClearsWithOther
	return r
}

// users are the steps of those that would go with an object and that the commit does not want
// either, and whether that is all of them.
func (c Case) users(of manifest.ID) (going []Step, all bool) {
	a := c.Seen.Answers[Question{Ask: Dependents, Of: of}]
	if a.Unknown != "" || a.Count == 0 {
		return nil, false
	}
	these := make(map[manifest.ID]bool, len(a.These))
	for _, id := range a.These {
		these[c.Seen.asWritten(id)] = true
	}
	serves := of.IsCRD() || of.IsMRD() // then the kind tells, however many there are
	for _, s := range c.Steps {
		k := c.Seen.Kinds[s.ID.GroupKind()]
		if (s.Action == Prune || s.Would == Prune) && (these[s.ID] || serves && k.Resource+"."+s.ID.Group == of.Name) {
			going = append(going, s)
		}
	}
	slices.SortFunc(going, func(a, b Step) int { return a.ID.Compare(b.ID) })
	return going, int64(len(going)) >= a.Count
}

// hasDependents says whether deleting an object of the kind takes others along.
func hasDependents(id manifest.ID) bool {
	switch id.Group {
	case "apiextensions.k8s.io":
		return id.Kind == "CustomResourceDefinition"
	case "apiextensions.crossplane.io":
		switch id.Kind {
		case "ManagedResourceDefinition", "CompositeResourceDefinition", "Composition":
			return true
		}
	case "pkg.crossplane.io":
		switch id.Kind {
		case "Provider", "Configuration", "Function":
			return true
		}
	}
	return id.Kind == "ProviderConfig" || id.Kind == "ClusterProviderConfig"
}

// keepHomes holds namespaces in which something of the sync stays that nobody wants any more.
func (p *Plan) keepHomes() {
	for i, s := range p.Steps {
		if s.Action != Prune || s.ID.Group != "" || s.ID.Kind != "Namespace" {
			continue
		}
		stays := slices.IndexFunc(p.Steps, func(o Step) bool { return o.ID.Namespace == s.ID.Name && (o.Action != Prune || o.Err != nil) })
		if stays < 0 {
			continue
		}
		s.Action, s.Would, s.Guard, s.Waits, s.after = Hold, Prune, guardInside, "", nil
		s.Reason = fmt.Sprintf("%s in it stays, and would be deleted with it; see there why", p.Steps[stays].ID)
		s.Clears = ClearsWithOther
		p.Steps[i] = s
	}
}

const guardInside = "others inside"

// othersInside holds a namespace in which someone else lives.
func othersInside(s Step, c Case) Ruling {
	if s.ID.Group != "" || s.ID.Kind != "Namespace" {
		return allowed
	}
	for _, o := range c.Want.Objects {
		if o.ID.Namespace == s.ID.Name {
			r := held("the commit still wants %s in it; declare the namespace again, or move that", o.ID)
			r.Clears = ClearsWithOther
			return r
		}
	}
	r := counted(Question{Ask: Inside, Of: s.ID}, c, "%s in it would be deleted with it%s; move or delete them first", "foreign object")
	r.Clears = ClearsWithOther
	return r
}

// counted rules by a count, and holds what could not be counted. The example is none of those that
// go themselves, if it can be helped.
func counted(q Question, c Case, format, noun string, going ...Step) Ruling {
	a, ok := c.Seen.Answers[q]
	switch {
	case !ok && c.Seen.Offline:
		return Ruling{Reason: "what would be deleted with it is not known without a cluster; a pass holds it while that is anything", Needs: []Question{q}}
	case !ok:
		r := held("it has not been counted what would be deleted with it")
		r.Needs = []Question{q}
		return r
	case a.Unknown != "":
		return held("what would be deleted with it cannot be counted (%s), so it counts as in use", a.Unknown)
	case a.Count > 0:
		stays := slices.IndexFunc(a.These, func(id manifest.ID) bool {
			return !slices.ContainsFunc(going, func(s Step) bool { return s.ID == c.Seen.asWritten(id) })
		})
		if stays >= 0 && len(going) > 0 {
			id := a.These[stays]
			a.Example = id.Kind + " " + strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
		}
		return held(format, plural(a.Count, noun), example(a))
	}
	return allowed
}

// example names one of what was counted, where one is known.
func example(a Answer) string {
	if a.Example == "" {
		return ""
	}
	return ", for example " + a.Example
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// empty holds every prune of a commit that looks like a mistake: a wrong path, an
// emptied branch, a generator that failed.
func empty(_ Step, c Case) Ruling {
	if c.Seen.Ends != NoEnding {
		return allowed
	}
	some := declares(c, func(render.Definition) bool { return true })
	if len(c.Want.Objects) == 0 && !some {
		return held("the commit wants nothing at all; is the path right?")
	}
	wantsCRD := slices.ContainsFunc(c.Want.Objects, func(o render.Object) bool { return o.ID.IsCRD() })
	if !some && !wantsCRD && owns(c, manifest.ID.IsCRD) {
		return held("the commit declares no definition at all, and this sync owns CRDs; is the path right?")
	}
	// Crossplane installs those of a package in a registry, so they are none of the ones that we own.
	if !declares(c, func(d render.Definition) bool { return !d.Package.Pulled() }) && owns(c, manifest.ID.IsMRD) {
		return held("the commit declares no definition of its own, and this sync owns ManagedResourceDefinitions; is the path right?")
	}
	return allowed
}

// declares reports whether the commit declares a definition that is like that. Those that only the
// cluster has are not the commit's.
func declares(c Case, like func(render.Definition) bool) bool {
	return slices.ContainsFunc(c.Want.Definitions, func(d render.Definition) bool { return (!c.Want.Live || d.Document != nil) && like(d) })
}

// owns reports whether the inventory holds an object that is like that.
func owns(c Case, like func(manifest.ID) bool) bool {
	for id := range c.Seen.Inventory.Entries {
		if like(id) {
			return true
		}
	}
	return false
}

// counts says whether a step is one of the prunes of which there may be too many: it takes away
// something that a person asked for, and nobody took it away before.
func (s Step) counts() bool { return s.Action == Prune && !s.Deleting && !isOurUsage(s.ID) }

// many holds all prunes where they are more than anyone expects of one commit.
func many(most int) func(Step, Case) Ruling {
	return func(s Step, c Case) Ruling {
		limit := most
		if limit == 0 {
			limit = min(max(len(c.Seen.Inventory.Entries)/5, 3), 20)
		}
		if c.Passing <= limit || c.Seen.Ends != NoEnding || !s.counts() {
			return allowed
		}
		return held("%d prunes in one pass are more than %d; raise maxPrunes if that is meant", c.Passing, limit)
	}
}
