package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ours says whether a live object carries both marks of a sync. One alone may have
// been copied along by another tool.
func Ours(o metav1.Object, s Sync) bool {
	return o.GetLabels()[SyncLabel] == s.Key() && o.GetAnnotations()[InventoryAnnotation] == s.Key()
}

// claims are the marks by which other tools say that an object is theirs.
var claims = []struct {
	by                     string
	label, annotation      string // the key whose presence claims it
	value                  string // the value the key must have; "" is any
	nameLabel, nameSpace   string // labels that name the owner
	nameAnnotation, spaces string // annotations that name the owner
}{
	{by: "Flux Kustomization", label: "kustomize.toolkit.fluxcd.io/name", nameLabel: "kustomize.toolkit.fluxcd.io/name", nameSpace: "kustomize.toolkit.fluxcd.io/namespace"},
	{by: "Flux HelmRelease", label: "helm.toolkit.fluxcd.io/name", nameLabel: "helm.toolkit.fluxcd.io/name", nameSpace: "helm.toolkit.fluxcd.io/namespace"},
	{by: "Flux ResourceSet", label: "resourceset.fluxcd.controlplane.io/name", nameLabel: "resourceset.fluxcd.controlplane.io/name", nameSpace: "resourceset.fluxcd.controlplane.io/namespace"},
	{by: "Argo CD application", annotation: "argocd.argoproj.io/tracking-id", nameAnnotation: "argocd.argoproj.io/tracking-id"},
	{by: "Helm release", annotation: "meta.helm.sh/release-name", nameAnnotation: "meta.helm.sh/release-name", spaces: "meta.helm.sh/release-namespace"},
	{by: "Helm", label: "app.kubernetes.io/managed-by", value: "Helm"},
	{by: "Config Sync", annotation: "configsync.gke.io/manager", nameAnnotation: "configsync.gke.io/manager"},
	{by: "kapp app", label: "kapp.k14s.io/app", nameLabel: "kapp.k14s.io/app"},
	{by: "apply set", label: "applyset.kubernetes.io/part-of", nameLabel: "applyset.kubernetes.io/part-of"},
	{by: "Sveltos", label: "projectsveltos.io/cluster-summary-name", nameLabel: "projectsveltos.io/cluster-summary-name"},
	{by: "Fleet bundle", annotation: "objectset.rio.cattle.io/id", nameAnnotation: "objectset.rio.cattle.io/id"},
	{by: "OLM", label: "olm.managed", value: "true"},
}

// managers are field managers that own what they write without leaving a mark.
var managers = map[string]string{
	"argocd-controller":                   "Argo CD",
	"argocd-application-controller":       "Argo CD",
	"apiextensions.crossplane.io/managed": "Crossplane",
	"kustomize-controller":                "Flux",
	"helm-controller":                     "Flux",
}

// Foreign names who else owns a live object, in words for people; "" is nobody.
func Foreign(o metav1.Object, s Sync) string {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if key, ok := labels[SyncLabel]; ok && key != s.Key() {
		return fmt.Sprintf("the Headgate sync %s", key)
	}
	if key, ok := annotations[InventoryAnnotation]; ok && key != s.Key() {
		return fmt.Sprintf("the inventory %s", key)
	}
	for _, c := range claims {
		value, ok := labels[c.label]
		if c.annotation != "" {
			value, ok = annotations[c.annotation]
		}
		if !ok || c.value != "" && value != c.value {
			continue
		}
		name := labels[c.nameLabel] + annotations[c.nameAnnotation]
		if space := labels[c.nameSpace] + annotations[c.spaces]; space != "" {
			name = space + "/" + name
		}
		return strings.TrimSpace("the " + c.by + " " + name)
	}
	for _, ref := range o.GetOwnerReferences() {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		if group == "pkg.crossplane.io" || group == "apiextensions.crossplane.io" {
			return fmt.Sprintf("Crossplane (%s %s)", ref.Kind, ref.Name)
		}
	}
	for _, f := range o.GetManagedFields() {
		if tool, ok := managers[f.Manager]; ok && f.Subresource == "" {
			return fmt.Sprintf("%s (field manager %s)", tool, f.Manager)
		}
	}
	return ""
}
