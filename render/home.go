package render

import (
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inNamespaces are the kinds of Kubernetes that are in namespaces, by group. Kinds of aggregated APIs are left out.
var inNamespaces = map[string]string{
	"": "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret " +
		"Service ServiceAccount",
	"apps":                      "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
	"autoscaling":               "HorizontalPodAutoscaler",
	"batch":                     "CronJob Job",
	"coordination.k8s.io":       "Lease",
	"discovery.k8s.io":          "EndpointSlice",
	"networking.k8s.io":         "Ingress NetworkPolicy",
	"policy":                    "PodDisruptionBudget",
	"rbac.authorization.k8s.io": "Role RoleBinding",
}

// DefaultNamespace is the namespace of namespaced objects that name none, unless a sync has another one.
const DefaultNamespace = "default"

// KubernetesNamespaced returns the kinds of Kubernetes that are in namespaces wherever a commit is applied.
func KubernetesNamespaced() map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for group, names := range inNamespaces {
		for name := range strings.FieldsSeq(names) {
			kinds[schema.GroupKind{Group: group, Kind: name}] = true
		}
	}
	return kinds
}

// HasNamespacedKinds reports whether a group is one of Kubernetes with kinds that are in namespaces.
func HasNamespacedKinds(group string) bool { return inNamespaces[group] != "" }

// Homes completes identities with the namespaces that objects get in the cluster.
type Homes struct {
	Scope   func(schema.GroupKind) (namespaced, known bool) // reports whether a kind is in namespaces
	Commits []Desired                                       // which declare other kinds
	Space   string                                          // for namespaced objects without a namespace; "" is DefaultNamespace
}

// KubernetesScope reports whether a kind is in namespaces, for the kinds of Kubernetes that are.
func KubernetesScope() func(schema.GroupKind) (namespaced, known bool) {
	kinds := KubernetesNamespaced()
	return func(gk schema.GroupKind) (bool, bool) { return kinds[gk], kinds[gk] }
}

// HomesOf returns the homes of the objects of a commit, as far as they are known without a cluster.
func HomesOf(want Desired) Homes {
	return Homes{Scope: KubernetesScope(), Commits: []Desired{want}}
}

// Complete returns what completes the identity of an object with the namespace that the object gets in the cluster. It takes the
// namespace from an object of a kind that has none. An identity of a kind with an unknown scope stays as it is.
func (h Homes) Complete() func(manifest.ID) manifest.ID {
	type scope struct{ namespaced, known bool }
	scopes := map[schema.GroupKind]scope{}
	space := h.Space
	if space == "" {
		space = DefaultNamespace
	}
	return func(id manifest.ID) manifest.ID {
		gk := id.GroupKind()
		s, looked := scopes[gk]
		if !looked {
			s.namespaced, s.known = h.ScopeOf(gk)
			scopes[gk] = s
		}
		switch {
		case !s.known:
		case s.namespaced && id.Namespace == "":
			id.Namespace = space
		case !s.namespaced:
			id.Namespace = ""
		}
		return id
	}
}

// ScopeOf reports whether a kind is in namespaces, and whether that is known.
func (h Homes) ScopeOf(gk schema.GroupKind) (namespaced, known bool) {
	if namespaced, known = h.Scope(gk); known {
		return namespaced, true
	}
	for _, commit := range h.Commits {
		if namespaced, known = declared(commit, gk); known {
			return namespaced, true
		}
	}
	return false, false
}

// declared reports whether a kind that a commit declares is in namespaces, and whether the commit declares it.
func declared(commit Desired, gk schema.GroupKind) (namespaced, known bool) {
	for _, d := range commit.Definitions {
		if d.Group == gk.Group && d.Kind == gk.Kind {
			return d.Scope != "Cluster", true
		}
	}
	for _, o := range commit.Objects {
		isXRD := crossplane.IsXRD(o.ID) && strings.HasSuffix(o.ID.Name, "."+gk.Group)
		if !isXRD && !(o.ID.IsCRD() && o.Serves == gk) {
			continue
		}
		u, err := o.Content()
		if err != nil {
			continue // another pass over the content reports it
		}
		text := func(path ...string) string {
			s, _, _ := unstructured.NestedString(u.Object, path...)
			return s
		}
		scope := text("spec", "scope")
		switch {
		case !isXRD:
			return scope == "Namespaced", true
		case text("spec", "claimNames", "kind") == gk.Kind:
			return true, true
		case text("spec", "names", "kind") != gk.Kind:
		case scope == "": // v1 has LegacyCluster as its default, and v2 Namespaced
			return !strings.HasSuffix(o.APIVersion, "/v1"), true
		default:
			return scope == "Namespaced", true
		}
	}
	return false, false
}
