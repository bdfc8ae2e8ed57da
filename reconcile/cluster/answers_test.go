package cluster_test

import (
	"net/http"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"

	"k8s.io/client-go/rest"
)

// An apply asks for the metadata of the object only. A server of other APIs, or an old one, answers with the whole object all the same.
func TestWholeAnswers(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	commit := want(t, namespace(space), w.crd("Bucket", "Namespaced"), configMap(space, "settings", "1"), w.instance("Bucket", space, "logs"))
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return fixtures.Transport(func(req *http.Request) (*http.Response, error) {
			if accept := req.Header.Get("Accept"); req.Method == http.MethodPatch {
				if !strings.Contains(accept, "as=PartialObjectMetadata") || !strings.HasSuffix(accept, ",application/json") {
					t.Errorf("%s accepts %s", req.URL, accept)
				}
				req = req.Clone(req.Context())
				req.Header.Set("Accept", "application/json")
			}
			return next.RoundTrip(req)
		})
	})
	first := applied(t, clusterOf(t, config, w, cluster.Options{}), commit)
	if got := actions(first); len(got) != 4 {
		t.Errorf("applied %q", got)
	}
	if got := actions(applied(t, clusterOf(t, config, w, cluster.Options{}), commit)); len(got) != 0 {
		t.Errorf("What was applied is known by its metadata, as with other servers: %q", got)
	}
}
