package ownership

import (
	"cmp"
	"fmt"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/crossplane"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Claim names another owner of a live object. The zero value means no owner.
type Claim struct {
	By    string // the owner in words: "the Flux Kustomization flux-system/apps"
	Final bool   // no sync may take over the object, whatever its adoption setting
	Sync  string // the key of the other Headgate sync that owns it

	Tool            Tool   // the tool whose objects in the cluster list what they reconcile, or ""
	Namespace, Name string // of the owner, if the mark contains them
}

// A Tool applies manifests and records what it applies in objects of the cluster.
type Tool string

// The tools.
const (
	Flux   Tool = "Flux"
	ArgoCD Tool = "Argo CD"
	Helm   Tool = "Helm"
)

// A claimKey is a label or annotation with which another tool marks its objects.
type claimKey struct {
	by         string
	tool       Tool
	label      string // the key of a label; a prefix if it ends in "/"
	annotation string // the key of an annotation
	value      string // the value that the key must have; "" for any value, which is the owner's name
	space      string // the key that holds the owner's namespace
	until      string // the character at which the name ends in the value; "" if the value is the name
	nameless   bool   // the value does not name the owner
}

// claimKeys lists the keys of the tools that Headgate recognizes.
var claimKeys = []claimKey{
	{by: "the Flux Kustomization", tool: Flux, label: "kustomize.toolkit.fluxcd.io/name", space: "kustomize.toolkit.fluxcd.io/namespace"},
	{by: "the Flux HelmRelease", tool: Flux, label: "helm.toolkit.fluxcd.io/name", space: "helm.toolkit.fluxcd.io/namespace"},
	{by: "the Flux ResourceSet", tool: Flux, label: "resourceset.fluxcd.controlplane.io/name", space: "resourceset.fluxcd.controlplane.io/namespace"},
	{by: "the Argo CD application", tool: ArgoCD, annotation: "argocd.argoproj.io/tracking-id", until: ":"},
	{by: "the Helm release", tool: Helm, annotation: "meta.helm.sh/release-name", space: "meta.helm.sh/release-namespace"},
	{by: "Helm", label: "app.kubernetes.io/managed-by", value: "Helm"},
	{by: "Config Sync", annotation: "configsync.gke.io/manager"},
	{by: "Config Sync", label: "configsync.gke.io/sync-name", space: "configsync.gke.io/sync-namespace"},
	{by: "Config Sync", annotation: "configmanagement.gke.io/managed", value: "enabled"},
	{by: "the kapp app", label: "kapp.k14s.io/app"},
	{by: "the kapp app", annotation: "kapp.k14s.io/identity", nameless: true},
	{by: "the apply set", label: "applyset.kubernetes.io/part-of"},
	{by: "the Sveltos profile", label: "projectsveltos.io/cluster-summary-name"},
	{by: "the Fleet bundle", annotation: "objectset.rio.cattle.io/id"},
	{by: "the Fleet bundle", label: "objectset.rio.cattle.io/hash", nameless: true},
	{by: "OLM", label: "olm.managed", value: "true"},
	{by: "OLM", label: "operators.coreos.com/", nameless: true},
}

// crossplaneClaimKeys lists the keys of package revisions and of the objects that they install.
var crossplaneClaimKeys = []claimKey{
	{by: "the Crossplane package revision", label: crossplane.RevisionLabel},
	{by: "the Crossplane package", label: crossplane.PackageLabel},
}

// managers lists field managers of tools that own what they write without leaving a mark.
var managers = map[string]string{
	"argocd-controller":             "Argo CD",
	"argocd-application-controller": "Argo CD",
	"kustomize-controller":          "Flux",
	"helm-controller":               "Flux",
	"configsync":                    "Config Sync",
	"kapp-server":                   "kapp",
}

// crossplanes lists the field managers with which Crossplane creates its own objects.
var crossplanes = func() map[string]string {
	tools := map[string]string{}
	for _, manager := range crossplane.FieldManagers {
		tools[manager] = "Crossplane"
	}
	return tools
}()

// Of returns the owner of a live object, if it is not this sync. An owner that Headgate cannot replace takes
// precedence. A mark that Headgate itself sent, according to the inventory, is not a claim.
func Of(o metav1.Object, s inventory.Sync, remembered string) Claim {
	if key := o.GetLabels()[inventory.SyncLabel]; key != "" && key != s.Key() {
		return Claim{By: fmt.Sprintf("the Headgate sync %s", key), Sync: key}
	}
	if by := cmp.Or(crossplane.OwnerOf(o), managed(o, crossplanes), marked(o, crossplaneClaimKeys, remembered).By); by != "" {
		return Claim{By: by, Final: true}
	}
	if key, ok := o.GetAnnotations()[inventory.InventoryAnnotation]; ok && key != s.Key() {
		return Claim{By: fmt.Sprintf("the inventory %s", key)}
	}
	if claim := marked(o, claimKeys, remembered); claim.By != "" {
		return claim
	}
	by := managed(o, managers)
	for _, tool := range []Tool{Flux, ArgoCD} {
		if strings.HasPrefix(by, string(tool)+" (") {
			return Claim{By: by, Tool: tool}
		}
	}
	return Claim{By: by}
}

// managed returns a tool that has a field manager on the object, in words, or "".
func managed(o metav1.Object, managers map[string]string) string {
	for _, f := range o.GetManagedFields() {
		if tool, ok := managers[f.Manager]; ok && f.Subresource == "" {
			return fmt.Sprintf("%s (field manager %s)", tool, f.Manager)
		}
	}
	return ""
}

// marked returns the claim of a tool by its mark on the object. A mark that Headgate sent does not count.
func marked(o metav1.Object, marks []claimKey, remembered string) Claim {
	for _, m := range marks {
		keys, isAnnotation := o.GetLabels(), m.annotation != ""
		if isAnnotation {
			keys = o.GetAnnotations()
		}
		key := m.in(keys)
		switch {
		case key == "" || SentByUs(o, remembered, isAnnotation, key):
			continue
		case m.value != "" || m.nameless:
			return Claim{By: m.by}
		}
		name := keys[key]
		if m.until != "" {
			name, _, _ = strings.Cut(name, m.until)
		}
		claim := Claim{By: fmt.Sprintf("%s %s", m.by, strings.TrimPrefix(keys[m.space]+"/"+name, "/"))}
		if m.tool != "" {
			claim.Tool, claim.Namespace, claim.Name = m.tool, keys[m.space], name
		}
		return claim
	}
	return Claim{}
}

// in returns the key that matches among labels or annotations, or "".
func (m claimKey) in(keys map[string]string) string {
	key := m.label + m.annotation
	if strings.HasSuffix(key, "/") {
		for k := range keys {
			if strings.HasPrefix(k, key) {
				return k
			}
		}
		return ""
	}
	if value, ok := keys[key]; !ok || m.value != "" && value != m.value {
		return ""
	}
	return key
}
