package cluster_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"

	"github.com/google/go-cmp/cmp"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

func TestTroubleWithTheServer(t *testing.T) {
	w := newWorld(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	listener.Close()

	reads := [][3]string{{"get", "", "configmaps"}, {"list", "", "configmaps"}, {"list", "", "namespaces"}, {"get", "", "namespaces"},
		{"list", "apiextensions.k8s.io", "customresourcedefinitions"}, {"get", "apiextensions.k8s.io", "customresourcedefinitions"}}
	cases := map[string]struct {
		reason string
		config *rest.Config
		want   []string // parts of the error
	}{
		"Unreachable": {
			reason: "The user needs the address to check it, and the log must not contain credentials.",
			config: &rest.Config{Host: "https://user:secret@" + nobody},
			want:   []string{"cannot reach the API server at " + nobody, "connection refused"},
		},
		"Unauthorized": {
			reason: "An expired token is not an RBAC problem.",
			config: &rest.Config{Host: w.config.Host, BearerToken: "wrong", TLSClientConfig: rest.TLSClientConfig{CAData: w.config.CAData, CAFile: w.config.CAFile}},
			want:   []string{"does not accept the credentials"},
		},
		"UnknownCertificate": {
			reason: "The kubeconfig may belong to another cluster.",
			config: &rest.Config{Host: w.config.Host},
			want:   []string{"cannot reach the API server", "certificate"},
		},
		"ForbiddenRead": {
			reason: "The error names the verb and the resource that RBAC must allow.",
			config: w.as(t, reads[2:]),
			want:   []string{"not allowed to get the inventory ConfigMap", `the verb "get"`, `"configmaps"`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := clusterOf(t, tc.config, w, cluster.Options{}).Observe(t.Context(), want(t, configMap("default", "a", "1")))
			if err == nil {
				t.Fatalf("%s\nwant an error", tc.reason)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s\nwant %q in %q", tc.reason, part, err)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%s\ncredentials in %q", tc.reason, err)
			}
		})
	}
}

func TestForbiddenWrites(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	commit := want(t, namespace(space), configMap(space, "a", "1"))
	reads := [][3]string{{"get", "", "configmaps"}, {"list", "", "configmaps"}, {"list", "", "namespaces"}, {"get", "", "namespaces"},
		{"list", "apiextensions.k8s.io", "customresourcedefinitions"}, {"create", "", "namespaces"}, {"patch", "", "namespaces"},
		{"get", "coordination.k8s.io", "leases"}, {"create", "coordination.k8s.io", "leases"}, {"update", "coordination.k8s.io", "leases"}}

	c := clusterOf(t, w.as(t, reads[:len(reads)-2]), w, cluster.Options{})
	_, err := c.Apply(t.Context(), planned(t, c, commit))
	if err == nil || !strings.Contains(err.Error(), `(RBAC: grant the verb "create")`) {
		t.Errorf("want the verb that the role lacks, as Kubernetes knows it, got %v", err)
	}

	c = clusterOf(t, w.as(t, reads), w, cluster.Options{})
	_, err = c.Apply(t.Context(), planned(t, c, commit))
	if err == nil || !strings.Contains(err.Error(), "not allowed to create the inventory ConfigMap") {
		t.Errorf("Without its inventory a pass writes nothing: want an error that says so, got %v", err)
	}
	if n := w.requests.Counts()["PATCH"]; n != 0 {
		t.Errorf("want no write, got %d", n)
	}

	c = clusterOf(t, w.as(t, append(reads, [3]string{"create", "", "configmaps"}, [3]string{"update", "", "configmaps"})), w, cluster.Options{})
	done, err := c.Apply(t.Context(), planned(t, c, commit))
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{}
	for _, o := range done {
		refused[o.ID.Kind] = o.Err != nil && strings.Contains(words.OfError(o.Err), `not allowed to patch ConfigMap `+space+`/a (RBAC: grant the verb "patch")`)
	}
	if diff := cmp.Diff(map[string]bool{"Namespace": false, "ConfigMap": true}, refused); diff != "" {
		t.Errorf("A forbidden write is the outcome of its object.\nrefused (-want +got):\n%s", diff)
	}
}

func TestTroubleWithOneObject(t *testing.T) {
	w := newWorld(t)
	broken := w.crd("Broken", "Cluster")
	broken.SetName("misnamed." + w.group)
	clash := w.crd("Region", "Cluster")
	clash.SetName("areas." + w.group)
	clash.Object["spec"].(map[string]any)["names"] = map[string]any{"kind": "Region", "plural": "areas"}
	applied(t, w.cluster(t, cluster.Options{}), want(t, w.crd("Region", "Cluster")))

	old := w.instance("Region", "", "south")
	old.SetAPIVersion(w.group + "/v1alpha1")
	commit := want(t, w.crd("Region", "Cluster"), broken, clash, old, w.crd("Bucket", "Cluster"),
		w.instance("Bucket", "", "fine"), w.instance("Broken", "", "child"), w.instance("Unknown", "", "orphan"))
	c := w.cluster(t, cluster.Options{Timeout: 3 * time.Second})
	done, err := c.Apply(t.Context(), planned(t, c, commit))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range done {
		got[o.ID.Name] = words.Of(o.NotReady)
		if o.Err != nil {
			got[o.ID.Name] = words.OfError(o.Err)
		}
	}
	for name, part := range map[string]string{
		"buckets." + w.group:  "",
		"fine":                "",
		"misnamed." + w.group: "is invalid",
		"areas." + w.group:    "NamesAccepted is False",
		"child":               "the CRD misnamed." + w.group + " was not applied",
		"orphan":              "no API serves the kind Unknown." + w.group,
		"south":               "is not served in version v1alpha1, only in v1",
	} {
		if text, ok := got[name]; !ok || part == "" && text != "" || !strings.Contains(text, part) {
			t.Errorf("Trouble with one object stops only what needs it.\n%s: want %q, got %q", name, part, text)
		}
	}
	if left := planned(t, c, want(t, w.crd("Region", "Cluster"))); left.Count(plan.Create) != 0 {
		t.Errorf("want nothing to create, got %v", actions(left))
	}
}

// A platform has thousands of CRDs with a hundred kilobytes each. While a pass waits, it watches whether they are served instead of
// reading them, even without its lease.
func TestServedIsHeardNotRead(t *testing.T) {
	w := newWorld(t)
	clash := w.crd("Region", "Cluster")
	clash.SetName("areas." + w.group)
	clash.Object["spec"].(map[string]any)["names"] = map[string]any{"kind": "Region", "plural": "areas"}
	applied(t, w.cluster(t, cluster.Options{}), want(t, w.crd("Region", "Cluster")))

	c := w.cluster(t, cluster.Options{Timeout: 6 * time.Second})
	w.requests.Reset()
	done, err := c.Apply(t.Context(), planned(t, c, want(t, w.crd("Region", "Cluster"), clash)))
	if err != nil {
		t.Fatal(err)
	}
	if last := done[len(done)-1]; !strings.Contains(words.Of(last.NotReady), "NamesAccepted is False") {
		t.Errorf("want the reason that was heard, got %q", last.NotReady)
	}
	reads := slices.DeleteFunc(w.requests.Log(), func(request string) bool {
		return !strings.HasPrefix(request, "GET ") || !strings.Contains(request, "/customresourcedefinitions/")
	})
	if len(reads) > 1 { // one read at the end, for the reason
		t.Errorf("it is read again and again: %q", reads)
	}
}

// inTheMaking returns the region north and its CRD. A controller reports that the region is being created, and a commit
// now wants it larger.
func (w *world) inTheMaking(t *testing.T) (crd, region *unstructured.Unstructured) {
	t.Helper()
	crd, region = w.crd("Region", "Cluster"), w.instance("Region", "", "north")
	applied(t, w.cluster(t, cluster.Options{}), want(t, crd, region))
	w.patch(t, w.at(w.resource("Region"), ""), "north", `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Creating","message":"the bucket is being made"}]}}`, "status")
	region.Object["spec"] = map[string]any{"size": int64(2)}
	return crd, region
}

func TestNotReady(t *testing.T) {
	w := newWorld(t)
	crd, region := w.inTheMaking(t)
	c := w.cluster(t, cluster.Options{Timeout: 2 * time.Second})
	done, err := c.Apply(t.Context(), planned(t, c, want(t, crd, region)))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range done {
		if o.ID.Name == "north" && (o.Err != nil || !strings.Contains(words.Of(o.NotReady), "the bucket is being made")) {
			t.Errorf("An applied object that is not ready has a reason, got %q, %v", o.NotReady, o.Err)
		}
	}
	wants := func(want string) {
		t.Helper()
		inv, err := c.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for id, e := range inv.Entries {
			if id.Name == "north" && e.Reconcile != want {
				t.Errorf("The inventory tells it as cli-utils would: got %+v, want %s", e, want)
			}
		}
	}
	wants("Timeout")

	// look makes another pass over the same commit, and returns the region's report and the duration.
	look := func(c *cluster.Cluster, revision string) (notReady string, took time.Duration) {
		t.Helper()
		commit := want(t, crd, region)
		commit.Revision = revision
		p := planned(t, c, commit)
		if p.Writes() {
			t.Errorf("There is nothing to write: %v", actions(p))
		}
		w.requests.Reset()
		begun := time.Now()
		done, err := c.Apply(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range done {
			if o.ID.Name == "north" {
				return words.Of(o.NotReady), time.Since(begun)
			}
		}
		return "", time.Since(begun)
	}
	why, took := look(c, "abc")
	if !strings.Contains(why, "the bucket is being made") {
		t.Errorf("The next pass says it again: %q", why)
	}
	if n := w.requests.Total(); took >= 2*time.Second || n > 1 {
		t.Errorf("but takes one look and does not wait: %s, %q", took, w.requests.Log())
	}
	if why, took = look(c, "def"); why == "" || took < 2*time.Second {
		t.Errorf("Another commit may have been to help, so it is waited for: %q after %s", why, took)
	}
	c = w.cluster(t, cluster.Options{Timeout: 2 * time.Second})
	if why, took = look(c, "def"); why == "" || took < 2*time.Second {
		t.Errorf("and so it is in a new process, which does not know for how long it was: %q after %s", why, took)
	}
	w.patch(t, w.at(w.resource("Region"), ""), "north", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status")
	if why, _ = look(c, "def"); why != "" {
		t.Errorf("It is ready now: %q", why)
	}
	wants("Succeeded")
	if look(c, "def"); w.requests.Total() > 0 {
		t.Errorf("A ready object is not checked: %q", w.requests.Log())
	}
}

// A process that waits for an object that never becomes ready does not lock out other processes, neither while it waits nor after
// it is killed.
func TestALongWaitLocksNobodyOut(t *testing.T) {
	w := newWorld(t)
	crd, region := w.inTheMaking(t)
	waiting := w.cluster(t, cluster.Options{Timeout: 10 * time.Second})
	p := planned(t, waiting, want(t, crd, region))
	ended := make(chan error, 1)
	go func() {
		_, err := waiting.Apply(t.Context(), p)
		ended <- err
	}()
	time.Sleep(4 * time.Second)
	other := w.cluster(t, cluster.Options{LockTimeout: time.Second})
	applied(t, other, want(t, crd, configMap("default", w.sync.Namespace, "1")))
	if err := <-ended; err != nil {
		t.Errorf("Changes by others meanwhile are no problem: %v", err)
	}
	inv, err := other.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var owned []string
	for id := range inv.Entries {
		owned = append(owned, id.Kind)
	}
	slices.Sort(owned)
	if diff := cmp.Diff([]string{"ConfigMap", "CustomResourceDefinition"}, owned); diff != "" {
		t.Errorf("and it does not take back what they remembered (-want +got):\n%s", diff)
	}
}

// An interrupted pass does not know the state of the objects that it wrote. The next pass must not assume that they are ready.
func TestNotReadyWhenInterrupted(t *testing.T) {
	w := newWorld(t)
	crd, region := w.inTheMaking(t)
	commit := want(t, crd, region)
	c := w.cluster(t, cluster.Options{Timeout: time.Minute})
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	if _, err := c.Apply(ctx, planned(t, c, commit)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("It waits: %v", err)
	}
	c = w.cluster(t, cluster.Options{Timeout: 2 * time.Second})
	done, err := c.Apply(t.Context(), planned(t, c, commit))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range done {
		if ready := o.ID.Name != "north"; ready != o.NotReady.None() {
			t.Errorf("%s: %q", o.ID, o.NotReady)
		}
	}
	if p := planned(t, c, commit); !p.Waits() || p.Remembers() {
		t.Errorf("It has to be checked again (%t) and there is nothing to store (%t)", p.Waits(), p.Remembers())
	}
}

func TestTryCreates(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{TryCreates: true})
	bad := configMap("default", "Not-A-Name", "1")
	p := planned(t, c, want(t, namespace(w.sync.Namespace+"-app"), bad, configMap(w.sync.Namespace+"-app", "later", "1"), w.crd("Region", "Cluster")))
	tried := map[string]string{}
	for _, s := range p.Steps {
		switch {
		case s.Err != nil:
			tried[s.ID.Name] = "refused"
		case s.After != nil:
			tried[s.ID.Name] = "accepted"
		default:
			tried[s.ID.Name] = "untried"
		}
	}
	if diff := cmp.Diff(map[string]string{
		"Not-A-Name":              "refused",
		w.sync.Namespace + "-app": "accepted",
		"later":                   "untried", // the commit also creates its namespace
		"regions." + w.group:      "accepted",
	}, tried); diff != "" {
		t.Errorf("A diff asks the API server about new objects.\ntrials (-want +got):\n%s", diff)
	}
	if n := w.requests.Writes(); n != 0 {
		t.Errorf("and writes nothing, got %d", n)
	}
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range done {
		if (o.Err != nil) != (o.ID.Name == "Not-A-Name") {
			t.Errorf("A known refusal is not sent again, got %s: %v", o.ID, o.Err)
		}
	}
}

// The API server refuses a binding to a role whose rights the account does not have, unless it has the verb bind. The account of
// examples/run does not have that verb.
func TestTryBindings(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	const group = rbac.GroupName
	var rights [][3]string
	for _, resource := range []string{"roles", "rolebindings"} {
		for _, verb := range []string{"get", "list", "create", "patch"} {
			rights = append(rights, [3]string{verb, group, resource})
		}
	}
	rights = append(rights, [3]string{"get", "", "configmaps"}, [3]string{"list", "", "configmaps"}, [3]string{"list", "", "namespaces"},
		[3]string{"list", "apiextensions.k8s.io", "customresourcedefinitions"})
	w.made(t, namespace(space))
	binding := func(name, role string) *unstructured.Unstructured {
		return thing(group+"/v1", "RoleBinding", space, name, map[string]any{
			"roleRef":  map[string]any{"apiGroup": group, "kind": "Role", "name": role},
			"subjects": []any{map[string]any{"kind": "User", "apiGroup": group, "name": "nobody"}},
		})
	}
	commit := want(t, thing(group+"/v1", "Role", space, "reader", map[string]any{
		"rules": []any{map[string]any{"verbs": []any{"list"}, "apiGroups": []any{""}, "resources": []any{"configmaps"}}},
	}), binding("together", "reader"), binding("alone", "missing"))
	p := planned(t, clusterOf(t, w.as(t, rights), w, cluster.Options{TryCreates: true}), commit)
	refused := map[string]bool{}
	for _, s := range p.Steps {
		if s.Err != nil {
			refused[s.ID.Name] = strings.Contains(s.Err.Error(), `"missing" not found`)
		}
	}
	if diff := cmp.Diff(map[string]bool{"alone": true}, refused); diff != "" {
		t.Errorf("Only the binding whose role nobody makes is refused.\nnames (-want +got):\n%s", diff)
	}
}

//test:long,unraced
func TestInventoryTooLarge(t *testing.T) {
	w := newWorld(t)
	var objects []*unstructured.Unstructured
	for i := range 4000 {
		objects = append(objects, configMap("default", strings.Repeat("n", 200)+"-"+string(rune('a'+i%26))+strings.Repeat("x", i/26%40)+"y"+strings.Repeat("z", i/1040), "1"))
	}
	c := w.cluster(t, cluster.Options{})
	p := planned(t, c, want(t, objects...))
	w.requests.Reset()
	_, err := c.Apply(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "split the sync") {
		t.Errorf("An inventory that would not fit is an error, got %v", err)
	}
	if n := w.requests.Counts()["PATCH"]; n != 0 {
		t.Errorf("before any write, got %d", n)
	}
}

func TestMisfit(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	number, noBase64 := configMap(space, "number", ""), configMap(space, "no-base64", "")
	number.Object["data"] = map[string]any{"key": int64(1)}
	delete(noBase64.Object, "data")
	noBase64.Object["binaryData"] = map[string]any{"key": "!"}
	c := w.cluster(t, cluster.Options{})
	p := planned(t, c, want(t, namespace(space), number, noBase64, configMap(space, "good", "1")))
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatalf("An object that does not fit its schema stops no pass: %v", err)
	}
	var failed []string
	for _, o := range done {
		if o.Err != nil {
			failed = append(failed, o.ID.Name)
		}
	}
	if diff := cmp.Diff([]string{"no-base64", "number"}, failed); diff != "" {
		t.Errorf("Only what does not fit fails.\n(-want +got):\n%s", diff)
	}
	for _, name := range []string{"number", "no-base64"} {
		sent := 0
		for _, request := range w.requests.Log() {
			if strings.HasPrefix(request, "PATCH") && strings.Contains(request, "/configmaps/"+name+"?") {
				sent++
			}
		}
		if sent != 1 {
			t.Errorf("%s was sent %d times; it does not get better", name, sent)
		}
	}
}
