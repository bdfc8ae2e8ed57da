package render

import (
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inNamespaces lists the namespaced kinds of Kubernetes, by group. It omits the kinds of aggregated APIs.
var inNamespaces = map[string]string{
	"": "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret " +
		"Service ServiceAccount",
	"apps":                      "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
	"autoscaling":               "HorizontalPodAutoscaler",
	"batch":                     "CronJob Job",
	"coordination.k8s.io":       "Lease LeaseCandidate",
	"discovery.k8s.io":          "EndpointSlice",
	"events.k8s.io":             "Event",
	"networking.k8s.io":         "Ingress NetworkPolicy",
	"policy":                    "PodDisruptionBudget",
	"rbac.authorization.k8s.io": "Role RoleBinding",
	"resource.k8s.io":           "ResourceClaim ResourceClaimTemplate",
	"storage.k8s.io":            "CSIStorageCapacity",
}

// acrossNamespaces lists the cluster-scoped kinds of Kubernetes, by group. A test compares both lists with an API server.
var acrossNamespaces = map[string]string{
	"": "ComponentStatus Namespace Node PersistentVolume",
	"admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration " +
		"ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
	"apiextensions.k8s.io":         "CustomResourceDefinition",
	"apiregistration.k8s.io":       "APIService",
	"auditregistration.k8s.io":     "AuditSink",
	"authentication.k8s.io":        "SelfSubjectReview TokenReview",
	"authorization.k8s.io":         "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
	"certificates.k8s.io":          "CertificateSigningRequest ClusterTrustBundle",
	"extensions":                   "PodSecurityPolicy",
	"flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
	"internal.apiserver.k8s.io":    "StorageVersion",
	"networking.k8s.io":            "IPAddress IngressClass ServiceCIDR",
	"node.k8s.io":                  "RuntimeClass",
	"policy":                       "PodSecurityPolicy",
	"rbac.authorization.k8s.io":    "ClusterRole ClusterRoleBinding",
	"resource.k8s.io":              "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice",
	"scheduling.k8s.io":            "PriorityClass",
	"storage.k8s.io":               "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
	"storagemigration.k8s.io":      "StorageVersionMigration",
}

// DefaultNamespace is the namespace of namespaced objects without one, unless a sync sets another default.
const DefaultNamespace = "default"

// KubernetesScopes returns the kinds of Kubernetes, and whether each is namespaced, which is the same in every cluster.
func KubernetesScopes() map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for namespaced, groups := range map[bool]map[string]string{true: inNamespaces, false: acrossNamespaces} {
		for group, names := range groups {
			for name := range strings.FieldsSeq(names) {
				kinds[schema.GroupKind{Group: group, Kind: name}] = namespaced
			}
		}
	}
	return kinds
}

// A Scope reports whether a kind is namespaced.
type Scope func(schema.GroupKind) (namespaced, known bool)

// Homes adds to identities the namespaces that objects get in the cluster.
type Homes struct {
	Scope   Scope
	Commits []Desired // the commits that declare other kinds
	Space   string    // the namespace of namespaced objects without one; "" means DefaultNamespace
}

// KubernetesScope returns a Scope that knows only the kinds of Kubernetes.
func KubernetesScope() Scope {
	kinds := KubernetesScopes()
	return func(gk schema.GroupKind) (namespaced, known bool) {
		namespaced, known = kinds[gk]
		return namespaced, known
	}
}

// HomesOf returns the Homes for the objects of a commit, with the scopes that are known without a cluster.
func HomesOf(want Desired) Homes {
	return Homes{Scope: KubernetesScope(), Commits: []Desired{want}}
}

// Complete returns a function that completes an identity with the namespace of the object in the cluster. For a cluster-scoped
// kind, the function removes the namespace. For a kind with an unknown scope, it returns the identity unchanged.
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

// ScopeOf reports whether a kind is namespaced, and whether that is known.
func (h Homes) ScopeOf(gk schema.GroupKind) (namespaced, known bool) {
	if h.Scope != nil {
		namespaced, known = h.Scope(gk)
	}
	if known {
		return namespaced, true
	}
	for _, commit := range h.Commits {
		if namespaced, known = declared(commit, gk); known {
			return namespaced, true
		}
	}
	return false, false
}

// declared reports whether a kind that a commit declares is namespaced. known is false if the commit does not declare it.
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
			continue // another check of the content reports the error
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
		case scope == "": // the default is LegacyCluster in v1 and Namespaced in v2
			return !strings.HasSuffix(o.APIVersion, "/v1"), true
		default:
			return scope == "Namespaced", true
		}
	}
	return false, false
}
