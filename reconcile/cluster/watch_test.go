package cluster_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// told is what a watch told last.
type told struct {
	mu      sync.Mutex
	moved   map[manifest.ID]string
	times   int
	trouble []string
}

func (w *told) state() ([]string, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := []string{}
	for id := range w.moved {
		names = append(names, id.String())
	}
	slices.Sort(names)
	return names, w.times
}

// comes waits until exactly these are told to have moved.
func (w *told) comes(t *testing.T, within time.Duration, want ...string) time.Duration {
	t.Helper()
	slices.Sort(want)
	begun := time.Now()
	for {
		got, _ := w.state()
		if slices.Equal(got, want) {
			return time.Since(begun)
		}
		if time.Since(begun) > within {
			t.Fatalf("after %s %q is told to have moved, want %q", within, got, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// watch watches until the test ends.
func watch(t *testing.T, c *cluster.Cluster) *told {
	t.Helper()
	w := &told{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Watch(ctx, func(moved map[manifest.ID]string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.moved, w.times = maps.Clone(moved), w.times+1
		}, func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.trouble = append(w.trouble, err.Error())
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return w
}

func TestWatchFindsEveryEdit(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	crd := w.crd("Bucket", "Namespaced")
	bucket := w.instance("Bucket", space, "logs")
	commit := want(t, namespace(space), crd, bucket, configMap(space, "settings", "1"))
	c := w.cluster(t, cluster.Options{})
	applied(t, c, commit)
	news := watch(t, c)
	time.Sleep(time.Second) // it lists

	buckets, settings := w.at(w.resource("Bucket"), space), w.at(configMaps, space)
	const logs, plainMap, theCRD = "Bucket.%g/%s/logs", "ConfigMap/%s/settings", "CustomResourceDefinition.apiextensions.k8s.io/buckets.%g"
	cases := map[string]struct {
		reason string
		edit   func(ctx context.Context) error
		want   string
	}{
		"Spec": {
			"An edit of what we applied moves the generation.",
			func(ctx context.Context) error { return edit(ctx, buckets, "logs", `{"spec":{"size":7}}`) }, logs,
		},
		"LabelRemoved": {
			"What loses our label leaves the watch, which says so.",
			func(ctx context.Context) error {
				return edit(ctx, buckets, "logs", `{"metadata":{"labels":{"`+plan.SyncLabel+`":null}}}`)
			}, logs,
		},
		"AnnotationEdited": {
			"Our annotation is part of what we applied.",
			func(ctx context.Context) error {
				return edit(ctx, w.at(crds, ""), crd.GetName(), `{"metadata":{"annotations":{"`+plan.InventoryAnnotation+`":null}}}`)
			}, theCRD,
		},
		"OwnerReferenceAdded": {
			"An owner reference makes the garbage collector take an object along.",
			func(ctx context.Context) error {
				owner, err := w.at(namespaces, "").Get(ctx, space, metav1.GetOptions{})
				if err != nil { // one that does not exist would have it collected at once
					return err
				}
				return edit(ctx, settings, "settings", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"`+space+`","uid":"`+string(owner.GetUID())+`"}]}}`)
			}, plainMap,
		},
		"ManagedFieldsWiped": {
			"Without our entry a field that leaves Git would stay.",
			func(ctx context.Context) error {
				return edit(ctx, buckets, "logs", `{"metadata":{"managedFields":[{}]}}`)
			}, logs,
		},
		"Deleted": {
			"What somebody deleted is to come back.",
			func(ctx context.Context) error { return buckets.Delete(ctx, "logs", metav1.DeleteOptions{}) }, logs,
		},
		"Recreated": {
			"An object of the same name and content is another object.",
			func(ctx context.Context) error {
				gone := buckets.Delete(ctx, "logs", metav1.DeleteOptions{})
				_, err := buckets.Create(ctx, bucket, metav1.CreateOptions{})
				return errors.Join(gone, err)
			}, logs,
		},
		"NoGeneration": {
			"A ConfigMap has no generation; any write moves its resourceVersion.",
			func(ctx context.Context) error { return edit(ctx, settings, "settings", `{"data":{"key":"2"}}`) }, plainMap,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			news.comes(t, 5*time.Second)
			if err := tc.edit(t.Context()); err != nil {
				t.Fatal(err)
			}
			took := news.comes(t, 2*time.Second, w.named(space, []string{tc.want})...)
			t.Logf("seen after %s", took)
			if name == "OwnerReferenceAdded" { // a pass would leave it: it is not our field
				w.patch(t, settings, "settings", `{"metadata":{"ownerReferences":null}}`)
			}
			applied(t, c, commit)
			news.comes(t, 2*time.Second)
		})
	}

	t.Run("Status", func(t *testing.T) {
		_, before := news.state()
		w.patch(t, buckets, "logs", `{"status":{"phase":"ready"}}`, "status")
		time.Sleep(time.Second)
		if _, after := news.state(); after != before {
			t.Errorf("A write of a status is no news, but there were %d", after-before)
		}
	})
	t.Run("Inventory", func(t *testing.T) {
		at := w.at(configMaps, w.sync.Namespace)
		if err := at.Delete(t.Context(), "headgate-main", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		news.comes(t, 2*time.Second, "ConfigMap/"+w.sync.Namespace+"/headgate-main")
		applied(t, c, commit)
		applied(t, c, commit)
		news.comes(t, 5*time.Second)
	})
	if len(news.trouble) > 0 {
		t.Errorf("trouble: %q", news.trouble)
	}
}

func TestWatchFollowsTheInventory(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{})
	news := watch(t, c) // before there is anything
	crd := w.crd("Bucket", "Cluster")
	commit := want(t, crd, w.instance("Bucket", "", "logs"))
	applied(t, c, commit)
	time.Sleep(time.Second)
	if got, _ := news.state(); len(got) > 0 {
		t.Errorf("What a pass writes did not move, but: %q", got)
	}
	w.patch(t, w.at(w.resource("Bucket"), ""), "logs", `{"spec":{"size":7}}`)
	news.comes(t, 2*time.Second, w.named("", []string{"Bucket.%g/logs"})...)
	applied(t, c, commit)
	news.comes(t, 2*time.Second)

	// A kind that goes and comes back.
	if err := w.at(crds, "").Delete(t.Context(), crd.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		got, _ := news.state()
		return slices.Contains(got, "CustomResourceDefinition.apiextensions.k8s.io/"+crd.GetName())
	})
	until(t, func() bool {
		_, err := w.at(crds, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{})
		return err != nil
	})
	applied(t, c, commit)
	news.comes(t, 5*time.Second)
	until(t, func() bool { // the kind is followed again
		w.patch(t, w.at(w.resource("Bucket"), ""), "logs", `{"spec":{"size":9}}`)
		got, _ := news.state()
		return len(got) == 1
	})
}

func until(t *testing.T, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("not after 20 seconds")
		}
	}
}

// A line is a connection that can be cut.
type line struct {
	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errors.New("the line is cut")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

func (l *line) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

func TestWatchSurvivesADisconnect(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	commit := want(t, namespace(space), configMap(space, "settings", "1"), configMap(space, "others", "1"))
	applied(t, w.cluster(t, cluster.Options{}), commit)

	l := &line{}
	config := rest.CopyConfig(w.config)
	config.Dial = l.dial
	news := watch(t, clusterOf(t, config, w, cluster.Options{}))
	w.patch(t, w.at(configMaps, space), "settings", `{"data":{"key":"2"}}`)
	settings, others := "ConfigMap/"+space+"/settings", "ConfigMap/"+space+"/others"
	news.comes(t, 5*time.Second, settings)

	l.cut(true)
	w.patch(t, w.at(configMaps, space), "others", `{"data":{"key":"2"}}`)
	time.Sleep(time.Second)
	news.comes(t, 0, settings)
	l.cut(false)
	news.comes(t, 15*time.Second, settings, others)
}

func TestWatchCosts(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	commit := want(t, namespace(space), configMap(space, "settings", "1"))
	c := w.cluster(t, cluster.Options{})
	applied(t, c, commit)
	w.requests.Reset()
	watch(t, c)
	time.Sleep(1500 * time.Millisecond)
	if diff := cmp.Diff(map[string]int{"LIST": 3, "WATCH": 3, "GET": 2}, w.requests.Counts()); diff != "" {
		t.Errorf("One list and one watch for the inventory and for each kind, two requests for discovery (-want +got):\n%s\n%q", diff, w.requests.Log())
	}
	for _, r := range w.requests.Log() {
		if strings.HasPrefix(r, "WATCH ") && !strings.Contains(r, "Selector=") {
			t.Errorf("a watch of all that there is: %s", r)
		}
	}
}
