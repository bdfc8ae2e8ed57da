package preflight

import (
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Right is one verb on one resource.
type Right struct {
	Verb, Group, Resource string
	Namespace, Name       string // empty for all
}

func (r Right) String() string {
	s := r.Verb + " " + r.Resource
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Name != "" {
		s += " " + r.Name
	}
	if r.Namespace != "" {
		s += " in " + r.Namespace
	}
	return s
}

// A rule lists rights as RBAC does.
type rule struct {
	group     string
	resources []string
	verbs     []string
	own       bool // in the namespace of the Sync
	named     bool // only of the object that has the name of the Sync's inventory
}

func (r rule) rights(namespace, name string) []Right {
	var all []Right
	for _, resource := range r.resources {
		for _, verb := range r.verbs {
			one := Right{Verb: verb, Group: r.group, Resource: resource}
			if r.own {
				one.Namespace = namespace
			}
			if r.named {
				one.Name = render.BookPrefix + name
			}
			all = append(all, one)
		}
	}
	return all
}

// A Profile is a file of the examples with the rights of a process.
type Profile struct {
	Name, File string

	rules []rule
}

var (
	reads  = []string{"get", "list", "watch"}
	writes = []string{"get", "list", "watch", "create", "patch", "delete"}

	definitions = []string{"managedresourcedefinitions", "managedresourceactivationpolicies", "compositeresourcedefinitions", "compositions"}
	installed   = []string{"providers", "configurations", "functions", "imageconfigs", "deploymentruntimeconfigs"}
	namespaces  = rule{resources: []string{"namespaces"}, verbs: []string{"list"}}
)

// bookkeeping lists the rights to Headgate's own objects. watched is set if the process also lists its inventories in their namespace
// only.
func bookkeeping(watched bool) []rule {
	update, read := []string{"update"}, []string{"get", "delete"}
	if watched {
		update, read = append(update, "watch"), append(read, "list")
	}
	return []rule{
		{resources: []string{"configmaps", "secrets"}, verbs: []string{"create"}, own: true},
		{resources: []string{"configmaps"}, verbs: update, own: true, named: true},
		{resources: []string{"configmaps"}, verbs: read, own: true},
		{resources: []string{"secrets"}, verbs: []string{"get"}, own: true, named: true},
		{group: "coordination.k8s.io", resources: []string{"leases"}, verbs: []string{"create"}, own: true},
		{group: "coordination.k8s.io", resources: []string{"leases"}, verbs: []string{"get", "update"}, own: true, named: true},
	}
}

var (
	apiServices = rule{group: "apiregistration.k8s.io", resources: []string{"apiservices"}, verbs: []string{"list"}}
	crds        = rule{group: "apiextensions.k8s.io", resources: []string{"customresourcedefinitions"}, verbs: writes}

	// Observe only reads.
	Observe = Profile{"observe", "examples/observe/rbac.yaml", []rule{
		{group: "apiextensions.k8s.io", resources: []string{"customresourcedefinitions"}, verbs: reads},
		{group: crossplane.Extensions, resources: definitions, verbs: reads},
		{group: crossplane.Packages, resources: installed, verbs: reads},
		{resources: []string{"namespaces"}, verbs: reads},
	}}

	// ByCrossplane applies what makes Crossplane create CRDs.
	ByCrossplane = Profile{"crossplane", "examples/run/rights-crossplane.yaml", append(bookkeeping(true),
		rule{group: crossplane.Extensions, resources: definitions, verbs: writes},
		rule{group: crossplane.Packages, resources: installed, verbs: writes}, crds,
		rule{group: crossplane.Packages, resources: []string{"providerrevisions", "configurationrevisions", "functionrevisions", "locks"}, verbs: []string{"list"}},
		rule{group: crossplane.Extensions, resources: []string{"compositionrevisions", "usages"}, verbs: []string{"list"}},
		rule{group: crossplane.Operations, resources: []string{"operations", "cronoperations", "watchoperations"}, verbs: []string{"list"}},
		rule{group: crossplane.Protection, resources: []string{"usages", "clusterusages"}, verbs: []string{"list"}},
		namespaces, apiServices,
	)}

	// ByHeadgate applies CRDs.
	ByHeadgate = Profile{"headgate", "examples/run/rights-headgate.yaml", append(bookkeeping(true), crds, namespaces, apiServices)}

	// Objects applies other objects, but no CRDs.
	Objects = Profile{"objects", "examples/run/rights-objects.yaml", append(bookkeeping(false),
		rule{resources: []string{"configmaps"}, verbs: []string{"list", "watch"}},
		rule{group: "apiextensions.k8s.io", resources: []string{"customresourcedefinitions"}, verbs: []string{"list"}},
		namespaces,
	)}
)

// Profiles lists the profiles.
var Profiles = []Profile{Observe, ByCrossplane, ByHeadgate, Objects}

// Rights returns the rights of a profile for a Sync.
func (p Profile) Rights(namespace, name string) []Right {
	var all []Right
	for _, r := range p.rules {
		all = append(all, r.rights(namespace, name)...)
	}
	return all
}

// tooWide lists rights that no process of Headgate needs. The first one includes all others.
var tooWide = []Right{
	{Verb: "*", Group: "*", Resource: "*"},
	{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Verb: "impersonate", Resource: "users"},
}

// TooWide returns the rights that no process of Headgate needs.
func TooWide() []Right { return slices.Clone(tooWide) }

// A Wanted is a kind of object that a commit contains.
type Wanted struct {
	Group, Resource string
	Namespaces      []string // empty for a cluster-scoped kind
}

// rights returns the rights that a Sync needs for a kind: it lists and watches in the whole cluster, and writes in the namespaces.
func (w Wanted) rights(observes bool) []Right {
	of := func(verb, namespace string) Right {
		return Right{Verb: verb, Group: w.Group, Resource: w.Resource, Namespace: namespace}
	}
	all := []Right{of("list", ""), of("watch", "")}
	in := w.Namespaces
	if len(in) == 0 {
		in = []string{""}
	}
	verbs := []string{"get", "create", "patch", "delete"}
	if observes {
		verbs = []string{"get"}
	}
	for _, namespace := range in {
		for _, verb := range verbs {
			all = append(all, of(verb, namespace))
		}
	}
	return all
}

// mostRights is the maximum number of rights to ask about for one commit.
const mostRights = 2000

// Rights are the rights of a process, and those that its Sync needs.
type Rights struct {
	Namespace, Name string // of the Sync
	Needs           Profile
	Secrets         []string       // the Secrets that the Sync names
	Wanted          []Wanted       // the kinds of the commit
	Hidden          string         // why the kinds of the commit are not known; empty if they are
	Allowed         map[Right]bool // the answers of the API server
}

// Questions returns the rights to ask the API server about.
func (r Rights) Questions() []Right {
	var all []Right
	for _, p := range Profiles {
		all = append(all, p.Rights(r.Namespace, r.Name)...)
	}
	all = append(all, r.own()...)
	all = append(all, r.ofCommit()...)
	seen := map[Right]bool{}
	return slices.DeleteFunc(all, func(one Right) bool {
		twice := seen[one]
		seen[one] = true
		return twice
	})
}

// own returns the rights that the Sync needs whatever its commit contains.
func (r Rights) own() []Right {
	all := r.Needs.Rights(r.Namespace, r.Name)
	for _, name := range r.Secrets {
		all = append(all, Right{Verb: "get", Resource: "secrets", Namespace: r.Namespace, Name: name})
	}
	return all
}

// ofCommit returns the rights that the kinds of the commit need.
func (r Rights) ofCommit() []Right {
	var all []Right
	for _, w := range r.Wanted {
		if all = append(all, w.rights(r.Needs.Name == Observe.Name)...); len(all) > mostRights {
			return all[:mostRights]
		}
	}
	return all
}

// Judge compares the rights with those that the Sync needs.
func (r Rights) Judge() Result {
	own, kinds := r.missing(r.own()), r.missing(r.ofCommit())
	kinds = slices.DeleteFunc(kinds, func(one Right) bool { return slices.Contains(own, one) })
	switch {
	case len(own) > 0:
		return fail("kubectl apply -f "+r.Needs.File+", with the names of your Syncs", "%s; the Sync needs the profile %s, which lacks: %s",
			r.given(), r.Needs.Name, list(merged(append(own, kinds...))))
	case len(kinds) > 0:
		return fail("add these kinds to "+r.Needs.File, "%s; the objects of the commit also need: %s", r.given(), list(merged(kinds)))
	case r.Hidden != "":
		return unknown("", "%s, which fits the Sync; whether they suffice for the objects of the commit is not known: %s", r.given(), r.Hidden)
	case len(r.Wanted) == 0:
		return fine("%s, which fits the Sync", r.given())
	}
	return fine("%s, which fits the Sync and the %s of its commit", r.given(), counted(len(r.Wanted), "kind", "kinds"))
}

func (r Rights) missing(of []Right) []Right {
	return slices.DeleteFunc(slices.Clone(of), func(one Right) bool { return r.Allowed[one] })
}

// given describes the profiles whose rights the process has.
func (r Rights) given() string {
	var names []string
	for _, p := range Profiles {
		if len(r.missing(p.Rights(r.Namespace, r.Name))) == 0 {
			names = append(names, p.Name)
		}
	}
	switch len(names) {
	case 0:
		return "this process has the rights of no profile"
	case 1:
		return "this process has the rights of the profile " + names[0]
	}
	return "this process has the rights of the profiles " + strings.Join(names, ", ")
}

// merged describes rights, with all verbs on a resource in one entry.
func merged(rights []Right) []string {
	var order []Right
	verbs := map[Right][]string{}
	for _, r := range rights {
		of := r
		of.Verb = ""
		if verbs[of] == nil {
			order = append(order, of)
		}
		verbs[of] = append(verbs[of], r.Verb)
	}
	all := make([]string, len(order))
	for i, of := range order {
		of.Verb = strings.Join(verbs[of], "/")
		all[i] = of.String()
	}
	return all
}

// Wide are the answers of the API server about the rights of TooWide.
type Wide map[Right]bool

// Judge judges whether a process has rights that it never needs.
func (w Wide) Judge() Result {
	const do = "use a service account with the rights of one of the files in examples/observe and examples/run"
	has := slices.DeleteFunc(TooWide(), func(one Right) bool { return !w[one] })
	switch {
	case len(has) == 0:
		return fine("this process can neither do everything, nor give itself more rights")
	case has[0] == tooWide[0]:
		return warn(do, "this process may do everything in the cluster, as cluster-admin may")
	}
	return warn(do, "this process may give itself more rights: %s", list(merged(has)))
}

// ProfileOf returns the profile that a Sync needs. kinds is set if its commit makes kinds, or if that is not known.
func ProfileOf(observes bool, owner render.Owner, kinds bool) Profile {
	switch {
	case observes:
		return Observe
	case !kinds:
		return Objects
	case owner == render.OwnerCrossplane:
		return ByCrossplane
	}
	return ByHeadgate
}

// MakesKinds reports whether an object makes a kind, activates one, or installs a package with kinds.
func MakesKinds(id manifest.ID) bool {
	return crossplane.DeclaresKind(id) || crossplane.IsMRAP(id) || crossplane.IsPackage(id)
}
