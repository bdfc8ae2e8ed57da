package cluster_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// tenants returns two clusters of one process, each with objects of its own in the same namespace and of the same kinds.
func (w *world) tenants(t *testing.T, of func(inventory.Sync) *rest.Config, shares *cluster.Shares) (one, other *cluster.Cluster) {
	t.Helper()
	at := func(name string) *cluster.Cluster {
		s := inventory.Sync{Namespace: w.sync.Namespace, Name: name}
		c, err := cluster.New(of(s), s, cluster.Options{Shares: shares})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, other = at("one"), at("other")
	space := w.sync.Namespace + "-app"
	applied(t, one, want(t, namespace(space), configMap(space, "one", "1")))
	applied(t, other, want(t, configMap(space, "other", "1")))
	return one, other
}

// counted returns a configuration that counts requests.
func (w *world) counted() *rest.Config {
	config := rest.CopyConfig(w.config)
	config.Wrap(w.requests.Wrap)
	return config
}

// Five hundred syncs of one process would otherwise open a thousand watches of ConfigMaps, and the API server would check each change
// against each of them.
func TestSyncsShareWatches(t *testing.T) {
	w := newWorld(t)
	config := w.counted()
	one, other := w.tenants(t, func(inventory.Sync) *rest.Config { return config }, &cluster.Shares{})
	space := w.sync.Namespace + "-app"
	w.requests.Reset()
	first, second := watch(t, one), watch(t, other)
	w.patch(t, w.at(configMaps, space), "one", `{"data":{"key":"2"}}`)
	first.comes(t, "ConfigMap/"+space+"/one")
	w.patch(t, w.at(configMaps, space), "other", `{"data":{"key":"2"}}`)
	second.comes(t, "ConfigMap/"+space+"/other")
	first.comes(t, "ConfigMap/"+space+"/one")
	if n := w.requests.Counts()["WATCH"]; n != 3 {
		t.Errorf("%d watches, want one of the inventories, one of ConfigMaps and one of Namespaces:\n%s", n, strings.Join(w.requests.Log(), "\n"))
	}

	// Another writer gives an object to the other sync. That is drift for the first one, and nothing to the second.
	w.patch(t, w.at(configMaps, space), "one", `{"metadata":{"labels":{"`+inventory.SyncLabel+`":"`+w.sync.Namespace+`.other"}}}`)
	first.comes(t, "ConfigMap/"+space+"/one")
	second.comes(t, "ConfigMap/"+space+"/other")

	// Each sync misses its own inventory only.
	if err := w.at(configMaps, w.sync.Namespace).Delete(t.Context(), "headgate-other", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second.comes(t, "ConfigMap/"+w.sync.Namespace+"/headgate-other")
	first.comes(t, "ConfigMap/"+space+"/one")
}

// A watch that was started with the rights of one tenant must not show anything to another.
func TestTenantsShareNothing(t *testing.T) {
	w := newWorld(t)
	configs := map[string]*rest.Config{"one": w.counted(), "other": w.counted()}
	one, other := w.tenants(t, func(s inventory.Sync) *rest.Config { return configs[s.Name] }, &cluster.Shares{})
	w.requests.Reset()
	watch(t, one)
	watch(t, other)
	until(t, func() bool { return w.requests.Counts()["WATCH"] == 5 }) // an inventory and ConfigMaps for each, and Namespaces of the first
}

// A role may allow a sync to watch its own inventory only, by name. Then each sync watches that.
func TestSyncsWatchWhatTheyMay(t *testing.T) {
	w := newWorld(t)
	config := w.counted()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return fixtures.Transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("watch") && strings.Contains(r.URL.Query().Get("labelSelector"), "inventory") {
				const no = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps is forbidden","reason":"Forbidden","code":403}`
				return &http.Response{StatusCode: http.StatusForbidden, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(no))}, nil
			}
			return next.RoundTrip(r)
		})
	})
	one, other := w.tenants(t, func(inventory.Sync) *rest.Config { return config }, &cluster.Shares{})
	first, second := watch(t, one), watch(t, other)
	space := w.sync.Namespace + "-app"
	w.patch(t, w.at(configMaps, space), "one", `{"data":{"key":"2"}}`)
	w.patch(t, w.at(configMaps, space), "other", `{"data":{"key":"2"}}`)
	first.comes(t, "ConfigMap/"+space+"/one")
	second.comes(t, "ConfigMap/"+space+"/other")
	if slices.ContainsFunc([]*told{first, second}, func(w *told) bool { return len(w.trouble) > 0 }) {
		t.Errorf("The syncs do not need that right, and nothing is reported: %q, %q", first.trouble, second.trouble)
	}
}

// An object of a CRD that was deleted and created again is watched again, for all syncs that own such objects.
func TestSharedKindComesBack(t *testing.T) {
	w := newWorld(t)
	config := w.counted()
	shares := &cluster.Shares{}
	one, other := w.tenants(t, func(inventory.Sync) *rest.Config { return config }, shares)
	crd := w.crd("Bucket", "Cluster")
	space := w.sync.Namespace + "-app"
	definition := want(t, namespace(space), configMap(space, "one", "1"), crd, w.instance("Bucket", "", "one"))
	bucket := want(t, configMap(space, "other", "1"), w.instance("Bucket", "", "other"))
	applied(t, one, definition)
	applied(t, other, bucket)
	first, second := watch(t, one), watch(t, other)
	w.patch(t, w.at(w.resource("Bucket"), ""), "other", `{"spec":{"size":7}}`)
	second.comes(t, w.named("", []string{"Bucket.%g/other"})...)

	if err := w.at(crds, "").Delete(t.Context(), crd.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		_, err := w.at(crds, "").Get(t.Context(), crd.GetName(), metav1.GetOptions{})
		return err != nil && slices.Contains(first.state(), "CustomResourceDefinition.apiextensions.k8s.io/"+crd.GetName())
	})
	applied(t, one, definition)
	applied(t, other, bucket)
	first.comes(t)
	second.comes(t)
	until(t, func() bool {
		w.patch(t, w.at(w.resource("Bucket"), ""), "other", `{"spec":{"size":9}}`)
		return len(second.state()) == 1
	})
	if got := first.state(); len(got) > 0 {
		t.Errorf("the first sync is told of the object of the second: %q", got)
	}
}
