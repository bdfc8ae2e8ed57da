package watch

import (
	"fmt"
	"testing"

	"headgate.dev/headgate/reconcile/inventory"

	"k8s.io/client-go/rest"
)

// A process replaces a Sync whenever its file changes, and a controller does that for years. Nothing may stay of those that ended: more
// than twenty known syncs make a watch receive all objects with our label.
func TestSharesForgetClosedClusters(t *testing.T) {
	shares, config := &Shares{}, &rest.Config{Host: "https://192.0.2.1"}
	type member struct {
		shared *Shared
		leave  func()
	}
	at := func(name string) member {
		all, leave, err := shares.Enter(config, inventory.Sync{Namespace: "a", Name: name}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return member{all, leave}
	}
	last := at("stays")
	alone := last.shared.selector()
	for i := range 1000 {
		c := at(fmt.Sprint("replaced-", i))
		c.leave()
		c.leave() // does nothing
		next := at("stays")
		last.leave() // after its successor began
		last = next
	}
	if got := last.shared.selector(); got != alone {
		t.Errorf("the watch selects %q, want %q", got, alone)
	}
	if last.shared.several("a") || len(last.shared.syncs) != 1 || len(shares.by) != 1 {
		t.Errorf("syncs %v and namespaces %v are remembered, want the one that stays", last.shared.syncs, last.shared.spaces)
	}
	last.leave()
	if len(shares.by) != 0 || len(last.shared.spaces) != 0 {
		t.Errorf("%d configurations are remembered, and nothing uses them", len(shares.by))
	}
}
