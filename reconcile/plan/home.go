package plan

import (
	"strings"

	"headgate.dev/headgate/render"
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

// KubernetesKinds returns the kinds of Kubernetes that are in namespaces wherever a commit is applied.
func KubernetesKinds() map[schema.GroupKind]Kind {
	kinds := map[schema.GroupKind]Kind{}
	for group, names := range inNamespaces {
		for name := range strings.FieldsSeq(names) {
			kinds[schema.GroupKind{Group: group, Kind: name}] = Kind{Namespaced: true}
		}
	}
	return kinds
}

// homes is what tells the scope of a kind: the kinds that are served, and the commits.
type homes struct {
	kinds   map[schema.GroupKind]Kind
	commits []render.Desired
	space   string // for namespaced objects without a namespace
}

func homesOf(seen Observed) homes {
	h := homes{kinds: seen.Kinds, commits: []render.Desired{seen.Want}, space: seen.Space}
	if seen.Base != nil {
		h.commits = append(h.commits, *seen.Base)
	}
	if h.space == "" {
		h.space = "default"
	}
	if seen.Offline {
		h.kinds = KubernetesKinds()
	}
	return h
}

// Homes returns what completes the identity of an object with the namespace that the object gets in the cluster. It takes
// the namespace from an object of a kind that has none. An identity of a kind with an unknown scope stays as it is.
func (p Plan) Homes() func(manifest.ID) manifest.ID { return p.homes.complete() }

// Homes returns what completes an identity before there is a plan. See Plan.Homes.
func (o Observed) Homes() func(manifest.ID) manifest.ID { return homesOf(o).complete() }

// Namespaces returns what tells the namespace that an object has in the cluster, "" if it has none. It reports false if no
// API and no commit tells whether the kind has namespaces, and the object names none.
func (o Observed) Namespaces() func(manifest.ID) (namespace string, known bool) {
	h := homesOf(o)
	complete, scopes := h.complete(), map[schema.GroupKind]bool{}
	return func(id manifest.ID) (string, bool) {
		gk := id.GroupKind()
		known, looked := scopes[gk]
		if !looked {
			_, known = h.scope(gk)
			known = known || id.IsCRD() || crossplane.IsClusterScoped(id.Group) || o.Offline && inNamespaces[id.Group] != ""
			scopes[gk] = known
		}
		namespace := complete(id).Namespace
		return namespace, known || namespace != ""
	}
}

func (h homes) complete() func(manifest.ID) manifest.ID {
	type scope struct{ namespaced, known bool }
	scopes := map[schema.GroupKind]scope{}
	return func(id manifest.ID) manifest.ID {
		gk := id.GroupKind()
		s, looked := scopes[gk]
		if !looked {
			s.namespaced, s.known = h.scope(gk)
			scopes[gk] = s
		}
		switch {
		case !s.known:
		case s.namespaced && id.Namespace == "":
			id.Namespace = h.space
		case !s.namespaced:
			id.Namespace = ""
		}
		return id
	}
}

// scope reports whether a kind is in namespaces, and whether that is known.
func (h homes) scope(gk schema.GroupKind) (namespaced, known bool) {
	if k, served := h.kinds[gk]; served {
		return k.Namespaced, true
	}
	for _, commit := range h.commits {
		if namespaced, known = declared(commit, gk); known {
			return namespaced, true
		}
	}
	return false, false
}

// declared reports whether a kind that a commit declares is in namespaces, and whether the commit declares it.
func declared(commit render.Desired, gk schema.GroupKind) (namespaced, known bool) {
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
