package cluster_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// told holds the last events of a watch.
type told struct {
	mu      sync.Mutex
	moved   map[manifest.ID]string
	trouble []string
}

func (w *told) state() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := []string{}
	for id := range w.moved {
		names = append(names, id.String())
	}
	slices.Sort(names)
	return names
}

// comes waits until the watch reported exactly these objects as changed.
func (w *told) comes(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	begun := time.Now()
	for {
		got := w.state()
		if slices.Equal(got, want) {
			return
		}
		if time.Since(begun) > fixtures.Patience {
			t.Fatalf("after %s %q is told to have moved, want %q", fixtures.Patience, got, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// watch watches until the test ends.
func watch(t *testing.T, c *cluster.Cluster) *told {
	t.Helper()
	return watchIt(t, c.Watch)
}

func watchIt(t *testing.T, watch func(ctx context.Context, tell func(map[manifest.ID]string), trouble func(what string, err error)) func()) *told {
	t.Helper()
	w := &told{}
	ctx, cancel := context.WithCancel(t.Context())
	wait := watch(ctx, func(moved map[manifest.ID]string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.moved = maps.Clone(moved)
	}, func(what string, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.trouble = append(w.trouble, what+" is watched")
			return
		}
		w.trouble = append(w.trouble, err.Error())
	})
	t.Cleanup(func() {
		cancel()
		wait()
	})
	return w
}

func TestWatchMissesTheInventory(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	commit := want(t, namespace(space), configMap(space, "settings", "1"))
	c := w.cluster(t, cluster.Options{})
	applied(t, c, commit)
	news := watch(t, c)
	until(t, func() bool { return w.requests.Counts()["WATCH"] == 3 })
	if err := w.at(configMaps, w.sync.Namespace).Delete(t.Context(), "headgate-main", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	news.comes(t, "ConfigMap/"+w.sync.Namespace+"/headgate-main")
	applied(t, c, commit)
	applied(t, c, commit)
	news.comes(t)
	if len(news.trouble) > 0 {
		t.Errorf("trouble: %q", news.trouble)
	}
}

func TestWatchFollowsTheInventory(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{})
	news := watch(t, c) // before the objects exist
	crd := w.crd("Bucket", "Cluster")
	commit := want(t, crd, w.instance("Bucket", "", "logs"))
	applied(t, c, commit)
	time.Sleep(time.Second)
	if got := news.state(); len(got) > 0 {
		t.Errorf("Our own writes are no change, but: %q", got)
	}
	w.patch(t, w.at(w.resource("Bucket"), ""), "logs", `{"spec":{"size":7}}`)
	news.comes(t, w.named("", []string{"Bucket.%g/logs"})...)
	applied(t, c, commit)
	news.comes(t)

	// A kind is deleted and created again.
	if err := w.at(crds, "").Delete(t.Context(), crd.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		got := news.state()
		return slices.Contains(got, "CustomResourceDefinition.apiextensions.k8s.io/"+crd.GetName())
	})
	until(t, func() bool {
		_, err := w.at(crds, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{})
		return err != nil
	})
	applied(t, c, commit)
	news.comes(t)
	until(t, func() bool { // the kind is watched again
		w.patch(t, w.at(w.resource("Bucket"), ""), "logs", `{"spec":{"size":9}}`)
		got := news.state()
		return len(got) == 1
	})
}

func until(t *testing.T, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Since(begun) > fixtures.Patience {
			t.Fatalf("not after %s", fixtures.Patience)
		}
	}
}

func TestWatchSurvivesADisconnect(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	commit := want(t, namespace(space), configMap(space, "settings", "1"), configMap(space, "others", "1"))
	applied(t, w.cluster(t, cluster.Options{}), commit)

	line := &fixtures.Line{}
	config := rest.CopyConfig(w.config)
	config.Dial = line.Dial
	news := watch(t, clusterOf(t, config, w, cluster.Options{}))
	w.patch(t, w.at(configMaps, space), "settings", `{"data":{"key":"2"}}`)
	settings, others := "ConfigMap/"+space+"/settings", "ConfigMap/"+space+"/others"
	news.comes(t, settings)

	line.Cut(true)
	w.patch(t, w.at(configMaps, space), "others", `{"data":{"key":"2"}}`)
	time.Sleep(time.Second)
	news.comes(t, settings)
	line.Cut(false)
	news.comes(t, settings, others)
}

// forgetful answers watches like an API server without their resource version, until the client lists again.
type forgetful struct {
	http.RoundTripper
	mu   sync.Mutex
	late map[string]bool // whether a list must come first, by path; nil if not at all
}

func (f *forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.late == nil || r.Method != http.MethodGet:
	case !r.URL.Query().Has("watch"):
		f.late[r.URL.Path] = true
	case !f.late[r.URL.Path]:
		const gone = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (9)","reason":"Expired","code":410}`
		return &http.Response{
			StatusCode: http.StatusGone, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(gone)),
		}, nil
	}
	return f.RoundTripper.RoundTrip(r)
}

// After an interruption, the API server may no longer have the resource version of a watch (410 Gone). A list then finds all
// changes of that time, and reports only real ones.
func TestWatchComesTooLate(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space), configMap(space, "settings", "1"), configMap(space, "others", "1")))

	line, f := &fixtures.Line{}, &forgetful{}
	config := rest.CopyConfig(w.config)
	config.Dial = line.Dial
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		f.RoundTripper = next
		return f
	})
	news := watch(t, clusterOf(t, config, w, cluster.Options{}))
	settings, others := "ConfigMap/"+space+"/settings", "ConfigMap/"+space+"/others"
	w.patch(t, w.at(configMaps, space), "settings", `{"data":{"key":"2"}}`)
	news.comes(t, settings)

	f.mu.Lock()
	f.late = map[string]bool{}
	f.mu.Unlock()
	line.Cut(true)
	if err := w.at(configMaps, space).Delete(t.Context(), "others", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.requests.Reset()
	line.Cut(false)
	news.comes(t, settings, others)
	if n := w.requests.Counts()["LIST"]; n < 1 || n > 4 {
		t.Errorf("A list of each kind, and no more: %q", w.requests.Log())
	}
	news.mu.Lock()
	defer news.mu.Unlock()
	if len(news.trouble) > 0 {
		t.Errorf("This is normal, and nothing is reported: %q", news.trouble)
	}
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
