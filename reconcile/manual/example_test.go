package manual_test

import (
	"fmt"

	"headgate.dev/headgate/reconcile/manual"
)

func ExampleEntries() {
	e := manual.Entries()["DeletesObjects"]
	fmt.Println(e.About)
	fmt.Println(e.Message)
	fmt.Println(e.Link)
	// Output:
	// the guard in use
	// … would be deleted with it…; delete them first
	// guards/in-use.md#deletesobjects
}
