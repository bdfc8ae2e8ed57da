package render

import (
	"slices"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names, labels and annotations of the objects in which Headgate records what it applied. A commit must not contain such an object:
// applying it would replace the record of a sync, and pruning it would delete the record.
const (
	// Home is the namespace of the inventories of syncs on the command line.
	Home = "headgate-system"
	// BookPrefix is the prefix of the names of an inventory, its lease, and the Secret with its key.
	BookPrefix = "headgate-"
	// ValuesPrefix is the prefix of the names of an inventory's siblings.
	ValuesPrefix = "values-"
	// InventoryLabel is the label of cli-utils, with which its clients find an inventory.
	InventoryLabel = "cli-utils.sigs.k8s.io/inventory-id"
	// ValuesLabel is on a sibling of an inventory.
	ValuesLabel = "headgate.dev/inventory-values-of"
	// DigestKey is the key of the Secret's data that is used for the digests of Secrets.
	DigestKey = "digest-key"
)

// inventoryAnnotations lists the annotations of an inventory.
var inventoryAnnotations = []string{
	"headgate.dev/inventory", "headgate.dev/inventory-values", "headgate.dev/inventory-entries", "headgate.dev/history", "headgate.dev/crd-owner",
}

// Bookkeeping returns the kind of Headgate's own bookkeeping that an object is, or "" for any other object. hasKey reports whether
// its data has a key. In the namespaces homes, the name of a ConfigMap is enough; in other namespaces, another tool may use the
// same name.
func Bookkeeping(id manifest.ID, o metav1.Object, hasKey func(string) bool, homes ...string) string {
	named := strings.HasPrefix(id.Name, BookPrefix)
	switch {
	case id.Group == "coordination.k8s.io" && id.Kind == "Lease" && named:
		return "the lease of a sync"
	case id.Group == "" && id.Kind == "Secret" && named && hasKey(DigestKey):
		return "the key of a sync"
	case id.Group != "" || id.Kind != "ConfigMap":
		return ""
	}
	if o != nil {
		labels, annotations := o.GetLabels(), o.GetAnnotations()
		if _, is := labels[InventoryLabel]; is {
			return "an inventory"
		}
		if _, is := labels[ValuesLabel]; is {
			return "a part of an inventory"
		}
		if slices.ContainsFunc(inventoryAnnotations, func(key string) bool { _, is := annotations[key]; return is }) {
			return "an inventory"
		}
	}
	if named = named || strings.HasPrefix(id.Name, ValuesPrefix) && strings.Contains(id.Name, "."+BookPrefix); named && slices.Contains(homes, id.Namespace) {
		return "named as an inventory"
	}
	return ""
}

// bookkeeping refuses objects of a commit that are Headgate's own bookkeeping.
func bookkeeping(objects []manifest.Object) catalogue.Errors {
	var problems catalogue.Errors
	for _, o := range objects {
		keys := func(key string) bool {
			for _, field := range []string{"data", "stringData"} {
				if m, ok := o.Object[field].(map[string]any); ok {
					if _, is := m[key]; is {
						return true
					}
				}
			}
			return false
		}
		if what := Bookkeeping(o.ID(), o, keys, Home); what != "" {
			problems = append(problems, catalogue.Errorf(o.Origin,
				"%s is %s, by which Headgate or another tool remembers what it applied; remove it from the repository, or list its file in .headgateignore", o.ID(), what))
		}
	}
	return problems
}
