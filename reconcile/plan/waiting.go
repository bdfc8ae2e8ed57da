package plan

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The codes of steps that wait for their kind.
const (
	AwaitsCRD        Code = "AwaitsCRD"        // the CRD of the same plan that serves the kind
	PackageMayServe  Code = "PackageMayServe"  // a package that may contain the kind, and the kind
	CrossplaneComes  Code = "CrossplaneComes"  // the object of the commit that installs Crossplane, and the kind that Crossplane serves
	PackagesMayServe Code = "PackagesMayServe" // packages that may contain the kind, and the kind
	CRDHeld          Code = "CRDHeld"          // the CRD of the kind, and the guard that holds it
	PolicyHeld       Code = "PolicyHeld"       // the policy that activates the definition of the kind, and the guard that holds it
)

// The codes of steps whose kind is not served.
const (
	KindInactive     Code = "KindInactive"     // the kind, and its definition, which nothing activates
	KindNowhere      Code = "KindNowhere"      // the kind, which nothing in the commit defines
	CrossplaneAbsent Code = "CrossplaneAbsent" // the kind, which Crossplane would serve if it were installed
	KindHidden       Code = "KindHidden"       // the kind of an object that may exist although the kind is not served, and why
	KindUnreadable   Code = "KindUnreadable"   // the kind of an unreadable object, and the reason
	CRDTerminating   Code = "CRDTerminating"   // the CRD of the kind, which is being deleted
	CRDServesNothing Code = "CRDServesNothing" // the CRD of the kind, which serves no version
	CRDRefused       Code = "CRDRefused"       // the CRD of the kind, and the message of its condition
	CRDNotYetServed  Code = "CRDNotYetServed"  // the CRD of the kind
	APIServiceEmpty  Code = "APIServiceEmpty"  // the APIService of the group, whose API server does not list the kind
)

// A coming finds the object that will serve a kind which is not served yet: a CRD of this plan, or a definition, an XRD or a
// package for which Crossplane makes CRDs after the apply.
type coming struct {
	want render.Desired
	seen Observed
	crds map[schema.GroupKind]string // CRDs of this plan

	later    map[schema.GroupKind]manifest.ID // active definitions, and XRDs
	inactive map[schema.GroupKind]string      // definitions that nothing activates
	policies PoliciesInForce                  // of the cluster and of the commit; nil until needed
	core     *manifest.ID                     // the object of the commit that installs Crossplane itself; nil until needed
	packages []manifest.ID                    // packages of the commit that are not installed yet; their content may not be known
}

func newComing(seen Observed) *coming {
	c := &coming{want: seen.Want, seen: seen, crds: map[schema.GroupKind]string{}}
	for _, a := range seen.Asked {
		if a.ID.IsCRD() && a.Serves.Kind != "" {
			c.crds[a.Serves] = a.ID.Name
		}
	}
	return c
}

// A need is what must exist before an object can be sent.
type need struct {
	crd   string        // a CRD of this plan
	waits []Reason      // effects of Crossplane that must come first
	on    []manifest.ID // the objects of these effects
}

// ErrUnserved matches, with errors.Is, the error of a step whose kind nothing serves or will serve.
var ErrUnserved = errors.New("no API serves the kind")

// Is reports whether the error is an ErrUnserved.
func (p ReasonError) Is(target error) bool {
	return target == ErrUnserved && slices.Contains([]Code{KindInactive, KindNowhere, KindHidden, CrossplaneAbsent}, p.Code)
}

// of returns what will serve a kind; nothing if the kind is served already. It returns an error if nothing will serve it.
func (c *coming) of(gk schema.GroupKind) (need, error) {
	if _, served := c.seen.Kinds[gk]; served || c.seen.Stance.In(OnCommit) {
		return need{}, nil
	}
	if name, ok := c.crds[gk]; ok {
		return need{crd: name}, nil
	}
	if crossplane.Serves(gk.Group) && !ServesCrossplane(c.seen.Kinds) {
		return c.ofCrossplane(gk)
	}
	if err := c.look(); err != nil {
		return need{}, err
	}
	id, ok := c.later[gk]
	name, known := c.inactive[gk]
	if !ok && !known {
		name, ok, known = c.live(gk)
		id = crossplane.MRD(name)
	}
	switch {
	case ok:
		return need{waits: []Reason{Object.With(id)}, on: []manifest.ID{id}}, nil
	case known:
		return need{}, ReasonError{KindInactive.With(gk.String(), name)}
	}
	switch len(c.packages) {
	case 0:
		return need{}, ReasonError{KindNowhere.With(gk.String())}
	case 1:
		return need{waits: []Reason{PackageMayServe.With(c.packages[0], gk.String())}, on: c.packages}, nil
	}
	names := make([]string, len(c.packages))
	for i, id := range c.packages {
		names[i] = id.Name
	}
	return need{waits: []Reason{PackagesMayServe.With(names, gk.String())}, on: c.packages}, nil
}

// look finds the kinds that Crossplane will serve. It does so once, when the first unserved kind is met.
func (c *coming) look() error {
	if c.later != nil {
		return nil
	}
	c.later, c.inactive = map[schema.GroupKind]manifest.ID{}, map[schema.GroupKind]string{}
	for _, o := range c.want.Objects {
		if crossplane.IsXRD(o.ID) {
			if err := c.lookAt(o); err != nil {
				return err
			}
		}
		if crossplane.IsPackage(o.ID) && c.seen.Upstream.Packages[o.ID].State() != crossplane.Ready && c.want.Owner == render.OwnerCrossplane {
			c.packages = append(c.packages, o.ID)
		}
	}
	for _, d := range c.want.Definitions {
		gk := schema.GroupKind{Group: d.Group, Kind: d.Kind}
		switch {
		case d.Kind == "" || c.want.Owner != render.OwnerCrossplane:
		case (d.Active || c.opens(d.Name)) && !d.Paused:
			c.later[gk] = crossplane.MRD(d.Name)
		default:
			c.inactive[gk] = d.Name
		}
	}
	return nil
}

// lookAt finds the kinds that an XRD defines.
func (c *coming) lookAt(xrd render.Object) error {
	u, err := xrd.Content()
	if err != nil {
		return err
	}
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	for _, names := range []string{"names", "claimNames"} {
		if kind, _, _ := unstructured.NestedString(u.Object, "spec", names, "kind"); kind != "" {
			c.later[schema.GroupKind{Group: group, Kind: kind}] = xrd.ID
		}
	}
	return nil
}

// live returns the definition in the cluster, outside of the commit, that serves a kind, and whether it is active or going to be. A
// live definition shows its plural but not its kind; most plurals begin like the kind.
func (c *coming) live(gk schema.GroupKind) (name string, active, known bool) {
	begins := strings.ToLower(gk.Kind)
	begins = begins[:max(len(begins)-1, 0)] // policy, policies
	var found []string
	for name := range c.seen.Upstream.Definitions {
		plural, group, _ := strings.Cut(name, ".")
		if group == gk.Group && strings.HasPrefix(plural, begins) {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return "", false, false
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return found[0], c.opens(found[0]), true // prefer the shortest: for Topic, topics and not topicrules
}

// opens reports whether a definition is active in the cluster, or a policy will activate it.
func (c *coming) opens(name string) bool {
	if c.policies == nil {
		c.policies = c.seen.goingToBe()
	}
	return c.seen.Upstream.Definitions[name].Active || c.policies.Matching(name) != ""
}

// needs returns what must exist before a step: what serves its kind and, for a Composition, what serves the composed kinds. A new
// Composition with missing kinds would break the users of the old one.
func (s Step) needs(c *coming) (need, error) {
	first, err := c.of(s.ID.GroupKind())
	if !crossplane.IsComposition(s.ID) || err != nil || first.crd != "" || len(first.waits) > 0 {
		return first, err
	}
	composition, err := s.Object()
	if err != nil {
		return need{}, err
	}
	for _, gk := range composed(composition) {
		// Other findings report a kind that nothing defines.
		if n, err := c.of(gk); err == nil && len(n.waits) > 0 {
			return n, nil
		}
	}
	return need{}, nil
}

// awaitOpeners makes steps wait if a guard holds the object that would serve their kind: a CRD of this plan, or a policy that would
// make Crossplane create one. A person has to act on both.
func (p *drafted) awaitOpeners(seen Observed) {
	steps := p.byID()
	var force PoliciesInForce
	for i := range p.Steps {
		s := &p.Steps[i]
		if !s.writes() {
			continue
		}
		if crd := steps[CRD(s.Needs)]; s.Needs != "" && crd.Action == Hold {
			s.Needs = ""
			s.wait(crd.ID, CRDHeld.With(crd.ID.Name, string(crd.Guard)))
		}
		if len(s.AwaitsAny) != 1 || !crossplane.IsMRD(s.AwaitsAny[0]) {
			continue
		}
		if force == nil {
			force = append(PoliciesInForce{}, p.inForce(seen)...)
		}
		if policy, held := p.heldBack(s.AwaitsAny[0].Name, force, seen, steps); held {
			s.wait(policy.ID, PolicyHeld.With(policy.ID.Name, string(policy.Guard)))
		}
	}
}

// heldBack returns the step of the policy that would activate a definition, if a guard keeps this policy from being written and no
// other policy activates the definition.
func (p *drafted) heldBack(name string, force PoliciesInForce, seen Observed, steps map[manifest.ID]Step) (policy Step, held bool) {
	if seen.Upstream.Definitions[name].Active || force.Matching(name) != "" {
		return Step{}, false
	}
	for _, d := range p.Want.Definitions {
		if d.Name == name && isActiveByItself(d) {
			return Step{}, false
		}
	}
	for _, want := range p.Want.Policies {
		if s := steps[crossplane.MRAP(want.Name)]; AsLive(want).Matches(name) && s.Guard != "" {
			return s, true
		}
	}
	return Step{}, false
}

// composed returns the kinds of the objects in a Composition, sorted and without duplicates.
func composed(composition *unstructured.Unstructured) []schema.GroupKind {
	found := map[schema.GroupKind]bool{}
	var walk func(v any, named bool)
	walk = func(v any, named bool) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item, true)
			}
		case map[string]any:
			apiVersion, _ := v["apiVersion"].(string)
			kind, _ := v["kind"].(string)
			if gv, err := schema.ParseGroupVersion(apiVersion); named && err == nil && apiVersion != "" && kind != "" {
				found[schema.GroupKind{Group: gv.Group, Kind: kind}] = true
			}
			for key, item := range v {
				walk(item, key != "input" && key != "compositeTypeRef") // the type of an input is not a kind of an API
			}
		}
	}
	walk(composition.Object["spec"], false)
	kinds := make([]schema.GroupKind, 0, len(found))
	for gk := range found {
		kinds = append(kinds, gk)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// Waiting reports whether the step waits for something else. A later plan carries it out.
func (s Step) Waiting() bool { return len(s.Waits) > 0 }

// Waiting returns the number of waiting steps.
func (p Plan) Waiting() int { return len(p.Select(Step.Waiting).Steps) }

// Coming reports whether a step waits for an object that may come without the action of a user and is not late.
func (p Plan) Coming(late map[manifest.ID]bool) bool {
	stuck := map[manifest.ID]bool{}
	for _, s := range p.Steps {
		if s.Action == Hold || s.Err != nil || s.ID == crossplane.MRAP(s.ID.Name) && s.Action == Keep && s.Cause == Retain {
			stuck[s.ID] = true
		}
	}
	for _, e := range p.Effects {
		if e.State == Broken {
			stuck[e.On] = true
		}
	}
	isStuck := func(id manifest.ID) bool { return stuck[id] }
	comes := func(s Step) bool { // one of awaits, and all of after
		one := len(s.AwaitsAny) == 0 || len(slices.DeleteFunc(slices.Clone(s.AwaitsAny), isStuck)) > 0
		return one && !slices.ContainsFunc(s.AwaitsAll, isStuck)
	}
	for again := true; again; { // a step that waits for a stuck object is stuck, too
		again = false
		for _, s := range p.Steps {
			if s.Waiting() && !stuck[s.ID] && !comes(s) {
				stuck[s.ID], again = true, true
			}
		}
	}
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		return s.Waiting() && !s.Lingers() && s.Err == nil && !late[s.ID] && !stuck[s.ID]
	})
}

// refreshed returns the plan with its own steps and the observations of a newer plan.
func (p Plan) refreshed(now Plan) Plan {
	once := slices.DeleteFunc(slices.Clone(p.Notes), func(f manifest.Finding) bool {
		return f.Rule != ruleLeft && f.Rule != RuleRebuilt || slices.ContainsFunc(now.Notes, func(n manifest.Finding) bool { return n.Message == f.Message })
	})
	p.Want, p.Effects, p.Retained, p.Notes = now.Want, now.Effects, now.Retained, slices.Concat(once, now.Notes)
	return p
}

// replaced returns the plan with its steps replaced by those of a newer one. phases are the objects whose step in the newer plan is a
// later phase of one that was sent.
func (p Plan) replaced(by Plan, phases map[manifest.ID]bool) Plan {
	newer := by.byID()
	p.Steps = slices.Clone(p.Steps)
	for i, s := range p.Steps {
		if n, ok := newer[s.ID]; ok {
			if phases[s.ID] { // keep all phases of an object in one line of the diff
				n = s.waitingAs(n)
			}
			p.Steps[i] = n
			delete(newer, s.ID)
		}
		if s.Action == Prune && slices.Contains(by.Gone, s.ID) { // it disappeared without our help
			p.Steps[i] = p.Steps[i].free()
		}
	}
	for _, s := range by.Steps {
		if _, more := newer[s.ID]; more && s.Deactivates && s.Action != Update {
			p.Steps = append(p.Steps, s)
		}
	}
	return p
}
