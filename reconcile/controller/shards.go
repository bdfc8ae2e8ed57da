package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/inventory"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// caches returns what the controller keeps of the cluster.
func (o Options) caches() cache.Options {
	all := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	if o.Namespace != "" {
		all.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	if o.isShard() {
		all.ByObject = map[client.Object]cache.ByObject{&v1alpha1.Sync{}: {Label: o.Selector}}
	}
	return all
}

// everySync returns what reads Sync objects of all shards.
func (c *controller) everySync() client.Reader {
	if c.isShard() {
		return c.direct // the cache has only those of this shard
	}
	return c.client
}

// moved reports whether a Sync that this controller does not run any more still exists: another shard has it.
func (c *controller) moved(ctx context.Context, name inventory.Sync) bool {
	return c.isShard() && c.direct.Get(ctx, client.ObjectKey{Namespace: name.Namespace, Name: name.Name}, &v1alpha1.Sync{}) == nil
}

// betweenShards is when a shard looks again at dependencies, which may be Syncs of other shards: it does not watch these.
const betweenShards = 10 * time.Second

// againForOthers returns when to look at the dependencies of a Sync again that this shard does not watch; 0 for never.
func (c *controller) againForOthers(s v1alpha1.Sync) time.Duration {
	if c.isShard() && len(s.Spec.DependsOn) > 0 {
		return betweenShards
	}
	return 0
}
