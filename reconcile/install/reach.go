package install

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A grant is one rule that holds for an account: in a namespace, or everywhere.
type grant struct {
	rbac.PolicyRule

	namespace string // "" for the whole cluster
}

// A reach is what the token of an account can do.
type reach struct {
	account string // NAMESPACE/NAME
	grants  []grant
}

// Reach returns lines that describe what someone with a stolen token of an installation could do. They follow from its roles and bindings.
func Reach(objects []*unstructured.Unstructured) ([]string, error) {
	own, others, err := reaches(objects)
	if err != nil {
		return nil, err
	}
	lines := []string{fmt.Sprintf("With a stolen token of %s, someone could:", own.account)}
	if len(own.grants) == 0 {
		return append(lines, "  - do nothing in the cluster: the account has no rights, and its Pod has no token"), nil
	}
	all := own.grants
	lines = append(lines, own.lines()...)
	limits, unknown := "It cannot: ", false
	for _, other := range others {
		lines = append(lines, fmt.Sprintf("  and, as %s:", other.account))
		all = append(all, other.grants...)
		if len(other.grants) == 0 {
			unknown = true
			lines = append(lines, "  - do what the roles of this account allow, which the installation does not set")
		}
		lines = append(lines, other.lines()...)
	}
	if len(others) == 0 {
		unknown = true
		lines = append(lines, "  and act as each service account that its namespace lets the controller act as (examples/controller/tenant.yaml)")
	}
	for _, c := range consequences {
		if c.holds(all) {
			lines = append(lines, "  That includes: "+c.text)
		}
	}
	lines = append(lines, barriers(objects)...)
	if unknown {
		limits = "As itself, it cannot: "
	}
	var cannot []string
	for _, c := range dangers {
		if !c.holds(all) {
			cannot = append(cannot, c.text)
		}
	}
	return append(lines, "  "+limits+strings.Join(cannot, "; ")), nil
}

// barriers returns a line for each admission policy that limits an account.
func barriers(objects []*unstructured.Unstructured) (lines []string) {
	for _, u := range objects {
		if u.GetKind() == "ValidatingAdmissionPolicy" && !IsShared(u) {
			lines = append(lines, "  The admission policy "+u.GetName()+" limits the names of what that account writes in this namespace, and refuses Secrets that hold tokens of service accounts")
		}
	}
	return lines
}

// reaches returns what the account of the Deployment can do, and the accounts of the installation as which it may act.
func reaches(objects []*unstructured.Unstructured) (own reach, others []reach, err error) {
	rules := map[string][]rbac.PolicyRule{} // by kind, namespace and name
	key := func(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }
	bound := map[string][]grant{} // by account
	for _, u := range objects {
		switch u.GetKind() {
		case "Role", "ClusterRole":
			var role rbac.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role); err != nil {
				return own, nil, err
			}
			rules[key(u.GetKind(), u.GetNamespace(), u.GetName())] = role.Rules
		case "Deployment":
			name, _ := podOf(u)["serviceAccountName"].(string)
			own.account = u.GetNamespace() + "/" + name
		}
	}
	for _, u := range objects {
		if u.GetKind() != "RoleBinding" && u.GetKind() != "ClusterRoleBinding" {
			continue
		}
		var binding rbac.RoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &binding); err != nil {
			return own, nil, err
		}
		of := key(binding.RoleRef.Kind, map[bool]string{true: binding.Namespace}[binding.RoleRef.Kind == "Role"], binding.RoleRef.Name)
		for _, subject := range binding.Subjects {
			account := subject.Namespace + "/" + subject.Name
			for _, r := range rules[of] {
				bound[account] = append(bound[account], grant{r, binding.Namespace})
			}
		}
	}
	own.grants = bound[own.account]
	for _, g := range own.grants {
		if slices.Contains(g.Verbs, "impersonate") {
			for _, name := range g.ResourceNames {
				account := g.namespace + "/" + name
				others = append(others, reach{account, bound[account]})
			}
		}
	}
	return own, others, nil
}

// lines returns the rights of an account, by namespace and verbs.
func (r reach) lines() []string {
	type group struct{ namespace, verbs string }
	resources := map[group][]string{}
	for _, g := range r.grants {
		at := group{g.namespace, listed(g.Verbs)}
		for _, resource := range g.Resources {
			for _, of := range g.APIGroups {
				name := strings.TrimSuffix(resource+"."+of, ".")
				if len(g.ResourceNames) > 0 {
					name += " (" + strings.Join(g.ResourceNames, ", ") + ")"
				}
				resources[at] = append(resources[at], name)
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(resources), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.verbs, b.verbs))
	})
	var lines []string
	for _, at := range keys {
		slices.Sort(resources[at])
		where := "in every namespace and the cluster"
		if at.namespace != "" {
			where = "in the namespace " + at.namespace
		}
		lines = append(lines, fmt.Sprintf("  - %s, %s: %s", at.verbs, where, strings.Join(slices.Compact(resources[at]), ", ")))
	}
	return lines
}

func listed(verbs []string) string {
	sorted := slices.Sorted(slices.Values(verbs))
	if len(sorted) == 1 {
		return sorted[0]
	}
	return strings.Join(sorted[:len(sorted)-1], ", ") + " and " + sorted[len(sorted)-1]
}

// A power is something that rights allow.
type power struct {
	text             string
	group, resources string   // resources: words, any of which is enough; "" for all
	verbs            []string // any of which is enough
	named            bool     // also if the right is only for some names
}

// holds reports whether one of the grants gives the power.
func (p power) holds(grants []grant) bool {
	return slices.ContainsFunc(grants, func(g grant) bool {
		group := slices.Contains(g.APIGroups, p.group) || slices.Contains(g.APIGroups, "*")
		resource := slices.Contains(g.Resources, "*") || slices.ContainsFunc(g.Resources, func(r string) bool { return slices.Contains(strings.Fields(p.resources), r) })
		verb := slices.ContainsFunc(g.Verbs, func(v string) bool { return v == "*" || slices.Contains(p.verbs, v) })
		return group && resource && verb && (p.named || len(g.ResourceNames) == 0)
	})
}

var writes = []string{"create", "update", "patch", "delete"}

// consequences are powers whose rights do not show how far they reach.
var consequences = []power{
	{"to run any program in the cluster, as a provider or a function of Crossplane, with the rights that Crossplane gives it", crossplane.Packages, "providers functions configurations deploymentruntimeconfigs", writes, true},
	{"to have Crossplane create, change and delete every object that it may write, through Compositions", crossplane.Extensions, "compositions compositeresourcedefinitions", writes, true},
	{"to delete a CRD, and with it every object of its kind, and to read all of them through a conversion webhook", "apiextensions.k8s.io", "customresourcedefinitions", writes, true},
	{"to change what its Syncs apply, and from where", "headgate.dev", "syncs", []string{"patch"}, true},
}

// dangers are the powers that matter most. An installation names those that it does not have.
var dangers = []power{
	{"read Secrets other than those named here", "", "secrets", []string{"get", "list", "watch"}, false},
	{"create Secrets", "", "secrets", writes, false},
	{"write roles or bindings", "rbac.authorization.k8s.io", "roles rolebindings clusterroles clusterrolebindings", append([]string{"bind", "escalate"}, writes...), true},
	{"act as another account", "", "serviceaccounts users groups", []string{"impersonate"}, false},
	{"create Pods or workloads", "", "pods", writes, true},
	{"create Deployments", "apps", "deployments", writes, true},
	{"write CRDs", "apiextensions.k8s.io", "customresourcedefinitions", writes, true},
	{"install packages of Crossplane", crossplane.Packages, "providers functions configurations", writes, true},
}
