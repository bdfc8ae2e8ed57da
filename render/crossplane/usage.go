package crossplane

import (
	"slices"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Usages are the kinds with which a user makes Crossplane protect an object from deletion.
var Usages = []schema.GroupKind{
	{Group: Protection, Kind: "Usage"},
	KindClusterUsage,
	{Group: Extensions, Kind: "Usage"}, // of Crossplane v1
}

// IsUsage reports whether a kind is one of the Usages.
func IsUsage(gk schema.GroupKind) bool { return slices.Contains(Usages, gk) }

// Usage returns the identity of the Usage with this name that protects namespaced or cluster-scoped objects.
func Usage(namespaced bool, namespace, name string) manifest.ID {
	if !namespaced {
		return idOf(KindClusterUsage, name)
	}
	return manifest.ID{Group: Protection, Kind: "Usage", Namespace: namespace, Name: name}
}

// UsageNames reports whether a Usage protects an object with these labels. It ignores other selectors of the Usage, such as the
// owner.
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
