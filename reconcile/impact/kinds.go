package impact

import (
	"regexp"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inert are the kinds of which a new object changes nothing that exists. What new definitions, policies of Crossplane and packages
// do is judged by what they activate and install.
var inert = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Namespace"}:      true,
	{Kind: "ServiceAccount"}: true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
	crossplane.KindMRD:  true,
	crossplane.KindMRAP: true,
	crossplane.KindXRD:  true,
}

// IsInert reports whether a new object changes nothing that exists, as far as its kind decides. Parts of a cluster read what is in
// the namespaces of the system.
func IsInert(id manifest.ID) bool { return inert[id.GroupKind()] && !IsSystem(id.Namespace) }

// IsSystem reports whether parts of a cluster or GitOps tools run in a namespace.
func IsSystem(namespace string) bool {
	return systems.MatchString(namespace)
}

var systems = regexp.MustCompile(`^(kube|openshift)-|-system$|^argocd`)

// runners are the providers, by the first part of their groups, whose resources hold manifests, charts, programs or requests.
var runners = map[string]bool{"ansible": true, "argocd": true, "helm": true, "http": true, "kubernetes": true, "opentofu": true, "tf": true}

// authorities are the groups of cloud providers, by their first part, that decide who may do what.
var authorities = map[string]bool{
	"authorization": true, "cloudplatform": true, "iam": true, "identitystore": true, "organizations": true, "rbac": true, "rolesanywhere": true, "sql": true, "ssoadmin": true, "vault": true,
}

// entitling matches the kinds of managed resources that grant rights or hold credentials.
var entitling = regexp.MustCompile(`IAM|Policy|Grant|Role|Permission|Access|Credential|Secret|Key$`)

// A Power is what a managed resource may do beyond the resource that it manages.
type Power string

// The powers.
const (
	NoPower  Power = ""
	Runs     Power = "runs"     // it runs a program, or makes objects of any kind
	Entitles Power = "entitles" // it grants rights or holds credentials
)

// PowerOf returns the power of a kind of a managed resource.
func PowerOf(of schema.GroupKind) Power {
	first, rest, _ := strings.Cut(of.Group, ".")
	switch {
	case runners[first] && (strings.HasSuffix(rest, crossplane.Domain) || strings.HasSuffix(rest, "upbound.io")):
		return Runs
	case authorities[first], entitling.MatchString(of.Kind):
		return Entitles
	}
	return NoPower
}

// selected are the kinds that objects elsewhere select by their labels, whatever the commit contains.
var selected = map[schema.GroupKind]bool{
	{Kind: "Namespace"}: true, {Kind: "Node"}: true, {Kind: "Pod"}: true,
	{Group: RBAC, Kind: "ClusterRole"}:                        true,
	{Group: crossplane.Extensions, Kind: "EnvironmentConfig"}: true,
	crossplane.KindComposition:                                true,
	crossplane.KindCompositionRevision:                        true,
}

// IsSelected reports whether objects outside of a commit may select objects of a kind by their labels.
func IsSelected(of schema.GroupKind) bool { return selected[of] }
