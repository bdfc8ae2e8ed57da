package draft

import (
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/types"
)

// wantedUIDs returns the UIDs of the live objects that the commit wants.
func wantedUIDs(seen facts.Observed) map[types.UID]manifest.ID {
	uids := map[types.UID]manifest.ID{}
	for _, a := range seen.Asked {
		if uid := uidOf(seen.Live, a.ID); uid != "" {
			uids[uid] = a.ID
		}
	}
	return uids
}

// uidOf returns the UID of a live object; "" if it does not exist.
func uidOf(o facts.Live, id manifest.ID) types.UID {
	live, exists := o.Objects[id]
	if !exists {
		return ""
	}
	return live.GetUID()
}
