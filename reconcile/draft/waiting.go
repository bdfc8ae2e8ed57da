package draft

import (
	"cmp"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A coming finds the object that will serve a kind which is not served yet: a CRD of this plan, or a definition, an XRD or a
// package for which Crossplane makes CRDs after the apply.
type coming struct {
	want render.Desired
	seen facts.Observed
	crds map[schema.GroupKind]string // CRDs of this plan

	later    map[schema.GroupKind]manifest.ID // active definitions, and XRDs
	inactive map[schema.GroupKind]string      // definitions that nothing activates
	policies plan.PoliciesInForce             // of the cluster and of the commit; nil until needed
	core     *manifest.ID                     // the object of the commit that installs Crossplane itself; nil until needed
	packages []manifest.ID                    // packages of the commit that are not installed yet; their content may not be known
}

func newComing(seen facts.Observed) *coming {
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
	crd   string          // a CRD of this plan
	waits []reason.Reason // effects of Crossplane that must come first
	on    []manifest.ID   // the objects of these effects
}

// of returns what will serve a kind; nothing if the kind is served already. It returns an error if nothing will serve it.
func (c *coming) of(gk schema.GroupKind) (need, error) {
	if _, served := c.seen.Kinds[gk]; served || c.seen.Stance.In(plan.OnCommit) {
		return need{}, nil
	}
	if name, ok := c.crds[gk]; ok {
		return need{crd: name}, nil
	}
	if crossplane.Serves(gk.Group) && !facts.ServesCrossplane(c.seen.Kinds) {
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
		return need{waits: []reason.Reason{reason.Object.With(id)}, on: []manifest.ID{id}}, nil
	case known:
		return need{}, reason.CodedError{Reason: reason.KindInactive.With(gk.String(), name)}
	}
	switch len(c.packages) {
	case 0:
		return need{}, reason.CodedError{Reason: reason.KindNowhere.With(gk.String())}
	case 1:
		return need{waits: []reason.Reason{reason.PackageMayServe.With(c.packages[0], gk.String())}, on: c.packages}, nil
	}
	names := make([]string, len(c.packages))
	for i, id := range c.packages {
		names[i] = id.Name
	}
	return need{waits: []reason.Reason{reason.PackagesMayServe.With(names, gk.String())}, on: c.packages}, nil
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
		c.policies = goingToBe(c.seen)
	}
	return c.seen.Upstream.Definitions[name].Active || c.policies.Matching(name) != ""
}

// needs returns what must exist before a step: what serves its kind and, for a Composition, what serves the composed kinds. A new
// Composition with missing kinds would break the users of the old one.
func needs(s plan.Step, c *coming) (need, error) {
	first, err := c.of(s.ID.GroupKind())
	waits := first.crd != "" || len(first.waits) > 0
	if err != nil || waits || !crossplane.IsComposition(s.ID) {
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
func (p *drafted) awaitOpeners(seen facts.Observed) {
	steps := p.ByID()
	var force plan.PoliciesInForce
	for i := range p.Steps {
		s := &p.Steps[i]
		if !s.Applies() {
			continue
		}
		if crd := steps[plan.CRD(s.Needs)]; s.Needs != "" && crd.Action == plan.Hold {
			s.Needs = ""
			wait(s, crd.ID, reason.CRDHeld.With(crd.ID.Name, string(crd.Guard)))
		}
		if len(s.AwaitsAny) != 1 || !crossplane.IsMRD(s.AwaitsAny[0]) {
			continue
		}
		if force == nil {
			force = append(plan.PoliciesInForce{}, p.inForce(seen)...)
		}
		if policy, held := p.heldBack(s.AwaitsAny[0].Name, force, seen.Upstream, steps); held {
			wait(s, policy.ID, reason.PolicyHeld.With(policy.ID.Name, string(policy.Guard)))
		}
	}
}

// heldBack returns the step of the policy that would activate a definition, if a guard keeps this policy from being written and no
// other policy activates the definition.
func (p *drafted) heldBack(name string, force plan.PoliciesInForce, up facts.Upstream, steps map[manifest.ID]plan.Step) (policy plan.Step, held bool) {
	if up.Definitions[name].Active || force.Matching(name) != "" {
		return plan.Step{}, false
	}
	for _, d := range p.Want.Definitions {
		if d.Name == name && facts.IsActiveByItself(d) {
			return plan.Step{}, false
		}
	}
	for _, want := range p.Want.Policies {
		if s := steps[crossplane.MRAP(want.Name)]; plan.AsLive(want).Matches(name) && s.Guard != "" {
			return s, true
		}
	}
	return plan.Step{}, false
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
			if gvk := schema.FromAPIVersionAndKind(apiVersion, kind); named && gvk.Version != "" && gvk.Kind != "" {
				found[gvk.GroupKind()] = true
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
