package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// A user who may read the inventory but no Secrets could otherwise guess passwords from a digest.
func TestDigestsOfSecretsAreKeyed(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	password := thing("v1", "Secret", space, "password", map[string]any{"stringData": map[string]any{"password": "1234"}})
	commit := want(t, namespace(space), password, configMap(space, "settings", "1"))
	c := w.cluster(t, cluster.Options{})
	applied(t, c, commit)
	inventory := func() string {
		data, _, _ := unstructured.NestedStringMap(w.mustGet(t, configMaps, w.sync.Namespace, "headgate-main").Object, "data")
		return fmt.Sprint(data)
	}
	for _, o := range commit.Objects {
		if o.ID.Kind == "Secret" && strings.Contains(inventory(), w.sync.Digest(o)) {
			t.Errorf("the inventory holds a digest that every user can compute: %s", inventory())
		}
		if o.ID.Kind == "ConfigMap" && !strings.Contains(inventory(), w.sync.Digest(o)) {
			t.Errorf("the digest of a ConfigMap needs no key: %s", inventory())
		}
	}

	quiet := func(reason string, c *cluster.Cluster) {
		t.Helper()
		w.requests.Reset()
		if p := planned(t, c, commit); p.Writes() || p.Remembers() || w.requests.Counts()["DRY-RUN PATCH"] > 0 {
			t.Errorf("%s\n%v, %v", reason, actions(p), w.requests.Log())
		}
	}
	quiet("The same process uses the same key.", c)
	quiet("The next process reads the same key.", w.cluster(t, cluster.Options{}))
	if w.requests.Counts()["GET"] < 1 || w.requests.Total() > 10 {
		t.Errorf("it takes one request: %v", w.requests.Log())
	}

	if err := w.at(secrets, w.sync.Namespace).Delete(t.Context(), "headgate-main", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next := w.cluster(t, cluster.Options{})
	p := planned(t, next, commit)
	if p.Writes() || !p.Remembers() {
		t.Errorf("With another key the Secret is looked at again, and remembered: %v", actions(p))
	}
	applied(t, next, commit)
	quiet("The Secret is read once.", w.cluster(t, cluster.Options{}))
}
