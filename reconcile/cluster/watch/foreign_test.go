package watch

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/cluster/store"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Anybody who may create objects may give them our label, and controllers copy labels to what they make. Ten thousand such objects cause no
// pass, whatever happens to them. Those with the label of a sync that this process does not run take no memory, although a process with
// more than twenty syncs receives them, and any others take little.
func TestForeignObjectsWithOurLabel(t *testing.T) {
	const foreign, most = 10_000, 8 << 20
	kind := schema.GroupKind{Kind: "ConfigMap"}
	ours := manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: "ours"}
	object := func(name, key string, version int) metav1.Object {
		o := &metav1.PartialObjectMetadata{}
		o.Namespace, o.Name, o.ResourceVersion = "a", name, fmt.Sprint(version)
		o.Labels = map[string]string{inventory.SyncLabel: key}
		o.Annotations = map[string]string{"large": fmt.Sprintf("%010000d", version)} // of no interest
		return o
	}
	for name, tc := range map[string]struct {
		key   string
		known int
	}{
		"AnotherProcess": {"a.unknown", 1},
		"OneOfOurs":      {"a.sync-0", 1 + foreign},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shares, config := &Shares{}, &rest.Config{Host: "https://192.0.2.1"}
				var all *Shared
				for i := range mostListed + 1 {
					entered, leave, err := shares.Enter(config, inventory.Sync{Namespace: "a", Name: fmt.Sprint("sync-", i)}, 0)
					if err != nil {
						t.Fatal(err)
					}
					defer leave()
					all = entered
				}
				all.surface, all.discovered = &api.Surface{Kinds: map[schema.GroupKind]plan.Kind{kind: {Version: "v1", Resource: "configmaps"}}}, time.Now()
				if got := all.selector(); got != inventory.SyncLabel {
					t.Fatalf("the watch selects %q, want all objects with our label", got)
				}

				client, err := api.Connect(config, inventory.Sync{Namespace: "a", Name: "sync-0"}, api.Options{})
				if err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex
				var told []map[manifest.ID]string
				w := New(store.New(client, 0, store.Term{}), all).watching(func(moved map[manifest.ID]string) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, moved)
				}, func(string, error) {})
				defer w.news.end()
				l := &kindMarks{watching: w}
				w.kinds[kind] = l
				k := &sharedKind{Shared: all, kind: kind, wake: make(chan struct{}, 1), listeners: map[string][]*kindMarks{"a.sync-0": {l}}}
				f, err := k.feed(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				f.fresh()
				f.put(object("ours", "a.sync-0", 1))
				f.whole()
				w.setOwned(map[manifest.ID]string{ours: l.marks[ours]})

				before := live()
				f.fresh()
				f.put(object("ours", "a.sync-0", 1))
				for i := range foreign / 2 {
					f.put(object(fmt.Sprint("listed-", i), tc.key, 1))
				}
				f.whole()
				for i := range foreign / 2 {
					f.put(object(fmt.Sprint("made-", i), tc.key, 1))
					f.put(object(fmt.Sprint("listed-", i), tc.key, 2))
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				grown := live() - before
				t.Logf("%d foreign objects take %d KB", foreign, grown>>10)
				if grown > most {
					t.Errorf("want at most %d KB", most>>10)
				}
				if n := len(k.objects.syncs); n != tc.known {
					t.Errorf("%d objects are remembered, want %d", n, tc.known)
				}
				for i := range foreign / 2 {
					f.gone(object(fmt.Sprint("made-", i), tc.key, 3))
					f.gone(object(fmt.Sprint("listed-", i), tc.key, 3))
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := len(k.objects.syncs); n != 1 || len(l.marks) != 1 || len(l.gone) > 0 {
					t.Errorf("%d objects are remembered when they are gone, and %d and %d by the sync", n, len(l.marks), len(l.gone))
				}
				if len(told) > 0 {
					t.Errorf("%d passes begin for objects that no sync owns", len(told))
				}
				f.put(object("ours", "a.sync-0", 4))
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(told) != 1 || len(told[0]) != 1 {
					t.Errorf("%d reports of the one change of an owned object: %v", len(told), told)
				}
			})
		})
	}
}

// live returns the bytes of reachable memory.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
