package plan

import (
	"slices"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Usages are the kinds by which Crossplane is told to protect an object from deletion.
var Usages = []schema.GroupKind{
	{Group: "protection.crossplane.io", Kind: "Usage"},
	{Group: "protection.crossplane.io", Kind: "ClusterUsage"},
	{Group: "apiextensions.crossplane.io", Kind: "Usage"}, // of the first Crossplane
}

// IsUsage reports whether a kind protects objects from deletion.
func IsUsage(gk schema.GroupKind) bool { return slices.Contains(Usages, gk) }

// UsageNames says whether a Usage is of an object with labels. One that selects by more than
// labels, whatever owns what it selects, is taken by its labels alone.
func UsageNames(usage *unstructured.Unstructured, id manifest.ID, labelled map[string]string) bool {
	of, _, _ := unstructured.NestedMap(usage.Object, "spec", "of")
	apiVersion, _ := of["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Group != id.Group || of["kind"] != id.Kind {
		return false
	}
	namespace, named, _ := unstructured.NestedString(of, "resourceRef", "namespace")
	if !named {
		namespace = usage.GetNamespace()
	}
	if namespace != "" && id.Namespace != "" && namespace != id.Namespace {
		return false
	}
	if name, named, _ := unstructured.NestedString(of, "resourceRef", "name"); named {
		return name == id.Name
	}
	want, selects, _ := unstructured.NestedStringMap(of, "resourceSelector", "matchLabels")
	return selects && labels.SelectorFromSet(want).Matches(labels.Set(labelled))
}
