package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"headgate.dev/headgate/reconcile/inventory"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// A surfaced is an API server that serves some kinds of the group example.org.
type surfaced struct {
	mu    sync.Mutex
	kinds []string
	bare  bool // it says nothing of versions
	stale bool // a server behind it does not answer
	fails bool
	log   []string // what was answered since the last look
}

func (s *surfaced) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := `{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current","resources":[` + resource("", "ConfigMap") + `]}]}`
	if r.URL.Path == "/apis" {
		freshness := "Current"
		if s.stale {
			freshness = "Stale"
		}
		var all []string
		for _, kind := range s.kinds {
			all = append(all, resource("example.org", kind))
		}
		text = fmt.Sprintf(`{"metadata":{"name":"example.org"},"versions":[{"version":"v1","freshness":%q,"resources":[%s]}]}`, freshness, strings.Join(all, ","))
	}
	tag := fmt.Sprintf("%q", fmt.Sprint(s.kinds, s.stale))
	switch {
	case s.fails:
		s.log = append(s.log, "no")
		http.Error(w, "no", http.StatusForbidden)
	case !s.bare && r.Header.Get("If-None-Match") == tag:
		s.log = append(s.log, "same")
		w.WriteHeader(http.StatusNotModified)
	default:
		s.log = append(s.log, "all")
		if !s.bare {
			w.Header().Set("ETag", tag)
		}
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[%s]}`, text)
	}
}

func resource(group, kind string) string {
	return fmt.Sprintf(`{"resource":%q,"responseKind":{"group":%q,"version":"v1","kind":%q},"scope":"Cluster","verbs":["list"]}`, strings.ToLower(kind)+"s", group, kind)
}

// Five hundred syncs ask in each pass what an API server serves, and it hardly ever changes.
func TestDiscoveryIsShared(t *testing.T) {
	s := &surfaced{kinds: []string{"Bucket"}}
	server := httptest.NewServer(s)
	defer server.Close()
	shared := &Discovered{}
	at := func(name string, shared *Discovered) *Client {
		c, err := Connect(&rest.Config{Host: server.URL}, inventory.Sync{Name: name}, Options{Discovered: shared})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, other := at("one", shared), at("other", shared)
	discover := func(reason string, by *Client, answers []string, kinds ...string) *Surface {
		t.Helper()
		s.log = nil
		found, err := by.Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := make([]string, len(found.Listable))
		for i, gk := range found.Listable {
			got[i] = gk.Kind
		}
		if diff := cmp.Diff(append([]string{"ConfigMap"}, kinds...), got); diff != "" {
			t.Errorf("%s\nkinds (-want +got):\n%s", reason, diff)
		}
		if !slices.Equal(s.log, answers) {
			t.Errorf("%s\nit answered %q, want %q", reason, s.log, answers)
		}
		return found
	}
	all, same := []string{"all", "all"}, []string{"same", "same"}
	first := discover("The first sync asks for everything.", one, all, "Bucket")
	first.reading = map[schema.GroupKind]string{{Kind: "Bucket"}: "v1"}
	second := discover("The next one is told that nothing has changed.", other, same, "Bucket")
	if second.reading != nil {
		t.Error("what one pass could not read in the preferred version is not known to another")
	}
	s.kinds = append(s.kinds, "Queue")
	discover("A kind is new, and the answer that says so is not asked for again.", one, all, "Bucket", "Queue")
	discover("The other sync knows of it.", other, same, "Bucket", "Queue")

	s.stale = true
	stale := []string{"all", "all", "all", "all"} // client-go tries again
	if len(discover("What is not complete", one, stale).Broken) != 1 {
		t.Error("is shown as broken.")
	}
	s.stale = false
	discover("It is not remembered, and what was known before is.", other, same, "Bucket", "Queue")

	s.fails = true
	if _, err := one.Discover(t.Context()); err == nil {
		t.Error("an error is reported")
	}
	s.fails, s.bare = false, true
	alone := at("alone", nil)
	for range 2 {
		discover("A server that knows no versions is asked for everything.", alone, all, "Bucket", "Queue")
	}
}
