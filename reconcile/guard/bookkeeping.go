package guard

import (
	"encoding/json"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bookkeeping returns which of Headgate's own records a step would write or delete; "" if it is none. The commit alone does not
// show that: a namespace may be the default one, and a sync may be in any namespace.
func bookkeeping(s plan.Step, c draft.Case) string {
	id := s.ID
	if id.Namespace == "" {
		id.Namespace = c.Seen.Space
	}
	live := c.Live(s)
	if live == nil {
		return render.Bookkeeping(id, nil, func(string) bool { return false }, render.Home, c.Seen.Inventory.Sync.Namespace)
	}
	keys := func(key string) bool { return writesData(live, key) }
	return render.Bookkeeping(id, live, keys, render.Home, c.Seen.Inventory.Sync.Namespace)
}

// writesData reports whether a field manager set a key in the data of a live object.
func writesData(live *metav1.PartialObjectMetadata, key string) bool {
	for _, m := range live.ManagedFields {
		var fields struct {
			Data map[string]json.RawMessage `json:"f:data"`
		}
		if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, is := fields.Data["f:"+key]; is {
			return true
		}
	}
	return false
}

// notOurBooks holds a step that would write an inventory, a lease or a key from the commit.
func notOurBooks(s plan.Step, c draft.Case) plan.Ruling {
	if what := bookkeeping(s, c); what != "" {
		return held(reason.WrittenByHeadgate.With(what))
	}
	return allowed
}

// home retains the namespace of the sync's inventory, which belongs to no commit. It also retains inventories, leases and keys,
// which an older version may have recorded as objects of a commit.
func home(s plan.Step, c draft.Case) plan.Ruling {
	if s.ID == namespaceOf(c) {
		return retained(reason.HoldsInventory.With())
	}
	if what := bookkeeping(s, c); what != "" {
		return retained(reason.NeverPruned.With(what))
	}
	return allowed
}
