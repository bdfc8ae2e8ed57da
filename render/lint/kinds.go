package lint

import (
	"encoding/json"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind is a kind that the commit declares, or that every cluster has.
type kind struct {
	composite     bool // of an XRD; its claim, too
	claim         bool
	managed       bool // of a definition
	clusterScoped bool
	by            manifest.ID // the object that declares it; zero for a kind of Kubernetes

	served func() []string // versions, nil if they are not known
}

// clusterScoped are kinds of Kubernetes that a namespaced composite resource cannot compose.
var clusterScoped = []schema.GroupKind{
	{Kind: "Namespace"}, {Kind: "PersistentVolume"}, {Kind: "Node"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, {Group: "storage.k8s.io", Kind: "StorageClass"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
}

// kindsOf returns the kinds that a commit declares, by definitions, CRDs and XRDs.
func kindsOf(want render.Desired) map[schema.GroupKind]kind {
	all := map[schema.GroupKind]kind{}
	for _, gk := range clusterScoped {
		all[gk] = kind{clusterScoped: true}
	}
	for _, d := range want.Definitions {
		all[schema.GroupKind{Group: d.Group, Kind: d.Kind}] = kind{managed: true, clusterScoped: d.Scope == "Cluster", by: crossplane.MRD(d.Name), served: func() []string { return servedBy(d) }}
	}
	for _, o := range want.Objects {
		if crossplane.IsXRD(o.ID) || o.ID.IsCRD() && o.Definition == "" {
			declare(all, o.ID, o.APIVersion, o.Content)
		}
	}
	for _, l := range want.Left {
		if crossplane.IsXRD(l.ID) {
			declare(all, l.ID, l.APIVersion, l.Content)
		}
	}
	return all
}

// declare adds the kinds of an XRD or a CRD.
func declare(all map[schema.GroupKind]kind, id manifest.ID, apiVersion string, content func() (*unstructured.Unstructured, error)) {
	u, err := content()
	if err != nil {
		return // render reports it
	}
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, path...)
		return s
	}
	group, scope := text("spec", "group"), text("spec", "scope")
	if crossplane.IsXRD(id) && scope == "" && apiVersion == crossplane.XRDAPIVersionV1 {
		scope = "LegacyCluster"
	}
	versions := servedIn(u)
	k := kind{composite: crossplane.IsXRD(id), clusterScoped: scope == "Cluster" || scope == "LegacyCluster", by: id, served: func() []string { return versions }}
	all[schema.GroupKind{Group: group, Kind: text("spec", "names", "kind")}] = k
	if claim := text("spec", "claimNames", "kind"); claim != "" {
		k.clusterScoped, k.claim = false, true
		all[schema.GroupKind{Group: group, Kind: claim}] = k
	}
}

// servedIn returns the served versions of an XRD or a CRD.
func servedIn(u *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	var all []string
	for _, v := range versions {
		v, _ := v.(map[string]any)
		if name, _ := v["name"].(string); v["served"] == true && name != "" {
			all = append(all, name)
		}
	}
	return all
}

// servedBy returns the served versions of a definition, or nil if they cannot be read.
func servedBy(d render.DecidedDefinition) []string {
	if d.Document == nil {
		return nil
	}
	known, err := d.Document.Learn("served 1", func() (string, error) {
		draft, err := d.Draft()
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(servedIn(draft))
		return string(raw), err
	})
	var all []string
	if err != nil || json.Unmarshal([]byte(known), &all) != nil {
		return nil
	}
	return all
}

// namesOf returns the names of the objects that others name, by kind: those that the commit declares, and the packages that
// Crossplane installs as dependencies.
func namesOf(want render.Desired) map[schema.GroupKind][]string {
	all := map[schema.GroupKind][]string{}
	add := func(id manifest.ID) { all[id.GroupKind()] = append(all[id.GroupKind()], id.Name) }
	for _, o := range want.Objects {
		add(o.ID)
	}
	for _, l := range want.Left {
		add(l.ID)
	}
	for _, p := range want.Packages {
		if p.Kind == crossplane.Function && p.Pulled() && p.Named.Name == "" {
			add(manifest.ID{Group: crossplane.Packages, Kind: p.Kind, Name: crossplane.DependencyName(p.Source)})
		}
	}
	for _, u := range want.Unread {
		if len(u.Installers) == 0 {
			add(manifest.ID{Group: crossplane.Packages, Kind: crossplane.Function, Name: crossplane.DependencyName(u.Source)})
		}
	}
	for gk := range all {
		slices.Sort(all[gk])
		all[gk] = slices.Compact(all[gk])
	}
	return all
}
