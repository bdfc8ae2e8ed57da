package cluster_test

import (
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
)

// last returns the last trouble that was told.
func (w *told) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.trouble) == 0 {
		return ""
	}
	return w.trouble[len(w.trouble)-1]
}

// A Role lets the account of a Sync list and watch in its namespace, and not in the whole cluster. A watch finds drift there. What the Sync owns
// in another namespace is told to be without a watch, and is no drift.
func TestWatchWithinARole(t *testing.T) {
	w := newWorld(t)
	space, other := w.sync.Namespace, w.sync.Namespace+"-other"
	w.made(t, namespace(space))
	w.made(t, namespace(other))
	var rights [][3]string
	for _, verb := range []string{"get", "list", "watch", "create", "patch", "update", "delete"} {
		rights = append(rights, [3]string{verb, "", "configmaps"}, [3]string{verb, "coordination.k8s.io", "leases"})
	}
	c := clusterOf(t, w.as(t, rights, space, other), w, cluster.Options{})
	own := configMap(space, "own", "1")
	applied(t, c, want(t, own))
	news := watch(t, c)
	w.patch(t, w.at(configMaps, space), "own", `{"data":{"key":"2"}}`)
	news.comes(t, "ConfigMap/"+space+"/own")
	if last := news.last(); last != "" {
		t.Errorf("it could be watched: %s", last)
	}
	applied(t, c, want(t, own, configMap(other, "far", "1")))
	until(t, func() bool { return strings.Contains(news.last(), "the rights let it watch that namespace only") })
	news.comes(t)
	applied(t, c, want(t, own))
	until(t, func() bool { return news.last() == "objects outside of "+space+" is watched" })
	w.patch(t, w.at(configMaps, space), "own", `{"data":{"key":"3"}}`)
	news.comes(t, "ConfigMap/"+space+"/own")
}
