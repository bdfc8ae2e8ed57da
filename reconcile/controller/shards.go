package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// ShardKey is the label whose value is the shard of a Sync object, as in Flux. A controller runs the Syncs that its selector matches.
const ShardKey = "sharding.fluxcd.io/key"

// isShard reports whether the controller runs only some of the Sync objects.
func (o Options) isShard() bool { return o.Selector != nil && !o.Selector.Empty() }

// leaseOf returns the name of the lease of the leader. Each selector has leaders of its own: headgate-controller-NAME for the shard NAME, and
// headgate-controller for the Syncs without a shard, so that a controller without shards never runs beside that one.
func (o Options) leaseOf() string {
	if !o.isShard() || o.Selector.String() == "!"+ShardKey {
		return leaseName
	}
	text := o.Selector.String()
	if name, is := strings.CutPrefix(text, ShardKey+"="); is && len(validation.IsDNS1123Label(name)) == 0 {
		return leaseName + "-" + name
	}
	sum := sha256.Sum256([]byte(text))
	return leaseName + "-" + hex.EncodeToString(sum[:5])
}

// caches returns what the controller keeps of the cluster: also the Syncs of other shards, on which its own may depend.
func (o Options) caches() cache.Options {
	all := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	if o.Namespace != "" {
		all.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return all
}

// runs reports whether the controller runs a Sync. Those of other shards are run by others.
func (o Options) runs(s *v1alpha1.Sync) bool {
	return !o.isShard() || o.Selector.Matches(labels.Set(s.Labels))
}
