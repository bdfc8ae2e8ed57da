package inventory_test

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"
)

// The data of an inventory has one line for each object, as clients of cli-utils also read it.
func ExampleEntries() {
	entries, err := inventory.Entries(map[string]string{
		"shop_settings__ConfigMap": `{"uid":"4f7c","digest":"sha256:11","strategy":"Apply","actuation":"Succeeded","reconcile":"Succeeded"}`,
		"_shop__Namespace":         `{"uid":"9a02","strategy":"Apply","actuation":"Succeeded","reconcile":"Succeeded"}`,
	})
	for _, id := range slices.SortedFunc(maps.Keys(entries), manifest.ID.Compare) {
		fmt.Println(id, entries[id].UID, entries[id].Actuation)
	}
	fmt.Println(err)
	// Output:
	// ConfigMap/shop/settings 4f7c Succeeded
	// Namespace/shop 9a02 Succeeded
	// <nil>
}
