package facts

import (
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"
)

// A copy of a package may have a new storage version, or a newly served one. The installed package may differ from the copy,
// because publishing tools add a conversion webhook to CRDs that have none in Git. Therefore, if Crossplane makes the CRDs and no
// cluster is asked, such a move is a warning and not a breaking change.

// A StorageMove is a definition in a copy whose objects lose fields unless a webhook converts them.
type StorageMove struct {
	Name   string
	Needs  schema.Change // the change that needs a conversion
	Origin manifest.Origin
}
