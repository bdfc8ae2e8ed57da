package install

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ShardKey is the label whose value is the shard of a Sync, as in Flux.
const ShardKey = "sharding.fluxcd.io/key"

const (
	selectorFlag = "--watch-label-selector="
	webhooks     = "-webhooks" // ends the names of what webhooks need
)

// mostShard is the maximum length of the name of a shard: the name of its Service for webhooks has at most 63 characters.
const mostShard = 63 - len(Deployment+"-"+webhooks)

// checkShards returns an error for shards that cannot have objects of their own.
func (o Options) checkShards() error {
	wrong := func(shard, why string) error { return fmt.Errorf("--shard: %q %s", shard, why) }
	for i, shard := range o.Shards {
		switch {
		case o.Profile == Preview:
			return wrong(shard, "is for profiles that run Sync objects, and preview runs those of a file")
		case len(shard) > mostShard:
			return wrong(shard, fmt.Sprintf("is too long: the names of its Services would have more than 63 characters; use at most %d", mostShard))
		case len(validation.IsDNS1123Label(shard)) > 0:
			return wrong(shard, "is no part of the name of a lease; use lower case letters, digits and '-', as in team-a")
		case strings.HasSuffix("-"+shard, webhooks):
			return wrong(shard, "ends as the Services for webhooks do; use another name")
		case slices.Contains(o.Shards[:i], shard):
			return wrong(shard, "is given twice")
		}
	}
	return nil
}

// withShards returns the manifests of what runs, and a copy for each shard. The names of a copy and what it selects are those of the shard,
// so that no object of the one selects Pods of the other. All of them have the same service account.
func (o Options) withShards(text []byte) []byte {
	all := []string{string(text)}
	for _, shard := range o.Shards {
		const account = "serviceAccountName: " + Deployment
		all = append(all, strings.NewReplacer(account, account, Deployment, Deployment+"-"+shard).Replace(string(text)))
	}
	return []byte(strings.Join(all, "\n---\n"))
}

// selector returns the argument with which the controller of a Deployment runs only the Syncs of its shard. The first Deployment runs those
// without a shard.
func (o Options) selector(deployment *unstructured.Unstructured) []any {
	switch shard, is := strings.CutPrefix(deployment.GetName(), Deployment+"-"); {
	case is:
		return []any{selectorFlag + ShardKey + "=" + shard}
	case len(o.Shards) > 0:
		return []any{selectorFlag + "!" + ShardKey}
	}
	return nil
}

// nameShards adds the leases of shards, and their addresses for webhooks, to the Role of the controller.
func (o Options) nameShards(role *unstructured.Unstructured) {
	if role.GetName() != Deployment {
		return
	}
	rules, _ := role.Object["rules"].([]any)
	for _, one := range rules {
		r, _ := one.(map[string]any)
		named, _ := r["resourceNames"].([]any)
		for _, name := range texts(named) {
			for _, shard := range o.Shards {
				r["resourceNames"] = append(r["resourceNames"].([]any), strings.Replace(name, Deployment, Deployment+"-"+shard, 1)) //nolint:forcetypeassert // it has this name
			}
		}
	}
}

// argsOf returns the arguments of 'headgate controller' in a Deployment; nil if it runs something else.
func argsOf(deployment *unstructured.Unstructured) []string {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	for _, one := range containers {
		container, _ := one.(map[string]any)
		if args := texts(container["args"]); len(args) > 0 && args[0] == "controller" {
			return args
		}
	}
	return nil
}

// A watcher is what a controller runs.
type watcher struct {
	namespace string // "" for all
	selector  labels.Selector
}

func watcherOf(deployment *unstructured.Unstructured) watcher {
	w := watcher{watches(deployment), labels.Everything()}
	for _, arg := range argsOf(deployment) {
		if text, is := strings.CutPrefix(arg, selectorFlag); is {
			if selector, err := labels.Parse(text); err == nil { // otherwise the controller does not start
				w.selector = selector
			}
		}
	}
	return w
}

// WatchThem is what to do about the lines of Unwatched.
const WatchThem = "name every shard with --shard when you install, or change the label " + ShardKey

// mostKeys is the maximum number of shards that Unwatched names.
const mostKeys = 5

// Unwatched returns a line for each shard whose Syncs no controller runs, although one runs other Syncs of their namespaces. deployments may
// hold any Deployments.
func Unwatched(deployments, syncs []*unstructured.Unstructured) []string {
	var watchers []watcher
	for _, d := range deployments {
		if argsOf(d) != nil && d.GetDeletionTimestamp() == nil {
			watchers = append(watchers, watcherOf(d))
		}
	}
	count := map[string]int{}
	for _, s := range syncs {
		near := slices.DeleteFunc(slices.Clone(watchers), func(w watcher) bool { return w.namespace != "" && w.namespace != s.GetNamespace() })
		runs := slices.ContainsFunc(near, func(w watcher) bool { return w.selector.Matches(labels.Set(s.GetLabels())) })
		if len(near) > 0 && !runs {
			count[s.GetLabels()[ShardKey]]++
		}
	}
	keys := slices.Sorted(maps.Keys(count))
	var lines []string
	for _, key := range keys[:min(len(keys), mostKeys)] {
		has := map[bool]string{true: "has", false: "have"}[count[key] == 1]
		switch key {
		case "":
			lines = append(lines, fmt.Sprintf("%s %s no label %s, and no Deployment watches such Syncs", counted(count[key]), has, ShardKey))
		default:
			lines = append(lines, fmt.Sprintf("%s %s the key %s, which no Deployment watches", counted(count[key]), has, key))
		}
	}
	if more := len(keys) - mostKeys; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more keys of Syncs are watched by no Deployment", more))
	}
	return lines
}

// Unwatched returns a line for each shard whose Syncs no controller of the cluster runs.
func (r Run) Unwatched(ctx context.Context, syncs []*unstructured.Unstructured) ([]string, error) {
	if !slices.ContainsFunc(syncs, func(s *unstructured.Unstructured) bool { return s.GetLabels()[ShardKey] != "" }) {
		return nil, nil
	}
	deployments, err := r.Cluster.List(ctx, Kinds[0], "", "")
	return Unwatched(deployments, syncs), err
}

// noteUnwatched tells of Syncs that an installation does not run, although it watches their namespaces. wanted are its objects. A Deployment
// that a user made beside them counts.
func (r Run) noteUnwatched(ctx context.Context, namespace string, wanted []*unstructured.Unstructured) error {
	syncs, err := r.Cluster.List(ctx, SyncKind, "", "")
	if err != nil {
		return err
	}
	live, err := r.Cluster.List(ctx, Kinds[0], "", "metadata.namespace="+namespace)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(live, func(d *unstructured.Unstructured) bool { return d.GetLabels()[Instance] == namespace })
	if lines := Unwatched(append(of("Deployment", wanted), others...), syncs); len(lines) > 0 {
		r.Note("%s: %s", strings.Join(lines, "; "), WatchThem)
	}
	return nil
}
