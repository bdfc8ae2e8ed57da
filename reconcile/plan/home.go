package plan

import "headgate.dev/headgate/render/manifest"

// Homes returns a function that completes an ID with the namespace that the object has in the cluster. It removes the namespace
// from the ID of a cluster-scoped object. It returns an ID of a kind with unknown scope unchanged.
func (p Plan) Homes() func(manifest.ID) manifest.ID { return p.Places.Complete() }
