package cluster_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

func TestPrune(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	base := []*unstructured.Unstructured{namespace(space), w.crd("Bucket", "Namespaced")}
	all := want(t, append(base, w.instance("Bucket", space, "logs"), configMap(space, "settings", "1"))...)
	applied(t, c, all)

	p := planned(t, c, want(t, base...))
	buckets := w.at(w.resource("Bucket"), space)
	if err := buckets.Delete(t.Context(), "logs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := buckets.Create(t.Context(), w.instance("Bucket", space, "logs"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for _, o := range done {
		texts[o.ID.Name] = o.Err == nil
	}
	if diff := cmp.Diff(map[string]bool{"logs": false, "settings": true}, texts); diff != "" {
		t.Errorf("Only the very object that was looked at is deleted; the rest of the tier goes on.\npruned (-want +got):\n%s", diff)
	}
	w.mustGet(t, w.resource("Bucket"), space, "logs")
	if _, err := w.at(configMaps, space).Get(t.Context(), "settings", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("want settings gone, got %v", err)
	}
	if diff := cmp.Diff([]string{"hold (not ours) Bucket." + w.group + "/" + space + "/logs"}, actions(planned(t, c, want(t, base...)))); diff != "" {
		t.Errorf("A failed prune stays owned, and what came in its place is not ours.\nsteps (-want +got):\n%s", diff)
	}
}

// The requests of a round of prunes grow linearly with the number of prunes. Headgate retries a delete if the server is busy. An
// object whose delete was never answered stays owned, and the next pass prunes it.
func TestPrunesOfABusyServer(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	var down atomic.Bool
	var answered sync.Map // by path
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.Method != http.MethodDelete || !strings.Contains(req.URL.Path, "/configmaps/c-") {
			return next.RoundTrip(req)
		}
		code, reason := http.StatusTooManyRequests, "TooManyRequests"
		if strings.HasSuffix(req.URL.Path, "1") {
			code, reason = http.StatusServiceUnavailable, "ServiceUnavailable"
		}
		if _, again := answered.LoadOrStore(req.URL.Path, true); again && (!down.Load() || code == http.StatusTooManyRequests) {
			return next.RoundTrip(req)
		}
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"not now"}`, code, reason)
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	})
	unguarded := func(c *cluster.Cluster) plan.Plan { // the guard "many" would hold so many prunes
		t.Helper()
		seen, err := c.Observe(t.Context(), want(t, namespace(space)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := draft.Compute(seen)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, n := range []int{50, 100} {
		answered.Clear()
		c := clusterOf(t, config, w, cluster.Options{Concurrency: 10})
		objects := []*unstructured.Unstructured{namespace(space)}
		for i := range n {
			objects = append(objects, configMap(space, fmt.Sprint("c-", i), "1"))
		}
		applied(t, c, want(t, objects...))
		p := unguarded(c)
		before := len(w.requests.Log())
		applied := func(pruned int) {
			t.Helper()
			done, err := c.Apply(t.Context(), p)
			if (err != nil) != down.Load() {
				t.Fatal(err)
			}
			for _, o := range done {
				if o.Action == plan.Prune && o.Err == nil {
					pruned--
				}
			}
			if pruned != 0 {
				t.Fatalf("%d prunes are missing of %d: %v", pruned, n, done)
			}
		}
		if n == 50 {
			down.Store(true)
			applied(45)
			down.Store(false)
			p = unguarded(c)
			if p.Count(plan.Prune) != 5 {
				t.Fatalf("The rest stays owned: %v", actions(p))
			}
			applied(5)
			continue
		}
		applied(n)
		if sent, most := len(w.requests.Log())-before, 3*n+20; sent > most { // each delete is answered with "not now" once, and each object is looked for once
			t.Errorf("%d requests for %d prunes, want at most %d", sent, n, most)
		}
	}
}

func TestPruneCountsOnceMore(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, w.crd("Bucket", "Cluster"), w.crd("Region", "Cluster")))
	p := planned(t, c, want(t, w.crd("Region", "Cluster")))
	if _, err := w.at(w.resource("Bucket"), "").Create(t.Context(), w.instance("Bucket", "", "late"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(done) != 1 || done[0].Err == nil || !strings.Contains(done[0].Err.Error(), "Bucket late") {
		t.Errorf("A user created a custom resource after the plan was made: want an outcome that names it, got %+v", done)
	}
	w.mustGet(t, crds, "", "buckets."+w.group)
}

func TestDependents(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	unserved := w.crd("Ghost", "Cluster")
	spec := unserved.Object["spec"].(map[string]any)
	spec["versions"].([]any)[0].(map[string]any)["served"] = false
	objects := []*unstructured.Unstructured{
		namespace(space), w.crd("Bucket", "Namespaced"), w.crd("Region", "Cluster"), unserved,
		w.crd("ProviderConfig", "Namespaced"), w.crd("ProviderConfigUsage", "Namespaced"),
		w.instance("ProviderConfig", space, "prod"),
	}
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, w.instance("Bucket", space, name))
	}
	usage := thing(w.group+"/v1", "ProviderConfigUsage", space, "u1", map[string]any{
		"providerConfigRef": map[string]any{"name": "prod", "kind": "ProviderConfig"},
	})
	objects = append(objects, usage)
	applied(t, c, want(t, objects...))
	rival := w.crd("Rival", "Namespaced")
	rival.Object["spec"].(map[string]any)["names"].(map[string]any)["kind"] = "Bucket"
	if _, err := w.at(crds, "").Create(t.Context(), rival, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limited := clusterOf(t, w.as(t, nil), w, cluster.Options{})
	if _, err := c.Observe(t.Context(), want(t)); err != nil {
		t.Fatal(err)
	}

	of := func(kind string) manifest.ID { return plan.CRD(strings.ToLower(kind) + "s." + w.group) }
	bucket := func(name string) manifest.ID {
		return manifest.ID{Group: w.group, Kind: "Bucket", Namespace: space, Name: name}
	}
	cases := map[string]struct {
		reason string
		as     *cluster.Cluster
		of     manifest.ID
		want   any
	}{
		"None":             {"Nothing uses the CRD.", c, of("Region"), question.Counted{}},
		"Three":            {"One request counts all objects and returns an example.", c, of("Bucket"), question.Counted{Count: 3, Example: "Bucket " + space + "/a", These: []manifest.ID{bucket("a"), bucket("b"), bucket("c")}}},
		"Gone":             {"A CRD that does not exist has no objects.", c, of("Nothing"), question.Counted{}},
		"Unserved":         {"Objects that cannot be read cannot be counted.", c, of("Ghost"), given.Unknown(reason.Failed.With("the CRD ghosts." + w.group + " serves no version"))},
		"NeverEstablished": {"Another CRD has its names, so it was never served.", c, of("Rival"), question.Counted{}},
		"Used": {
			"The provider creates usages of its ProviderConfigs.", c,
			manifest.ID{Group: w.group, Kind: "ProviderConfig", Namespace: space, Name: "prod"},
			question.Counted{Count: 1, Example: "ProviderConfigUsage " + space + "/u1", These: []manifest.ID{{Group: w.group, Kind: "ProviderConfigUsage", Namespace: space, Name: "u1"}}},
		},
		"UsedElsewhere": {
			"A ProviderConfig is used only from its own namespace.", c,
			manifest.ID{Group: w.group, Kind: "ProviderConfig", Namespace: "other", Name: "prod"}, question.Counted{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := question.Dependents{Of: tc.of}
			got, err := tc.as.Answer(t.Context(), []question.Any{q})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got[q]); diff != "" {
				t.Errorf("%s\nAnswer(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	q := question.Dependents{Of: of("Bucket")}
	got, err := limited.Answer(t.Context(), []question.Any{q})
	if err != nil || why(got[q]).Code != reason.CountForbidden {
		t.Errorf("A forbidden kind counts as in use: want Unknown, got %+v, %v", got[q], err)
	}
}

// why returns why a question could not be answered.
func why(answer any) reason.Reason {
	unknown, _ := answer.(question.Unknown)
	return reason.Of(unknown.Why)
}

// counted returns a count, or -1 if it is not known.
func counted(answers question.Answers, q question.Of[question.Counted]) int64 {
	a, is := question.Get(question.Known{Answers: answers}, q)
	if !is.Known() {
		return -1
	}
	return a.Count
}

// as returns the client configuration of a user who has only the rights of the rules: verb, group and resource. If namespaces are given, the
// user has them only there.
func (w *world) as(t *testing.T, rules [][3]string, namespaces ...string) *rest.Config {
	t.Helper()
	user := w.sync.Namespace + "-limited"
	var list []any
	for _, r := range rules {
		list = append(list, map[string]any{"verbs": []any{r[0]}, "apiGroups": []any{r[1]}, "resources": []any{r[2]}})
	}
	rbac := func(resource string, u *unstructured.Unstructured) {
		gvr := crds
		gvr.Group, gvr.Resource = "rbac.authorization.k8s.io", resource
		if _, err := w.at(gvr, u.GetNamespace()).Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	rbac("clusterroles", thing("rbac.authorization.k8s.io/v1", "ClusterRole", "", user, map[string]any{"rules": list}))
	bound := map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
		"subjects": []any{map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}},
	}
	if len(namespaces) == 0 {
		rbac("clusterrolebindings", thing("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", user, bound))
	}
	for _, namespace := range namespaces {
		rbac("rolebindings", thing("rbac.authorization.k8s.io/v1", "RoleBinding", namespace, user, bound))
	}
	config := rest.CopyConfig(w.config)
	config.Impersonate.UserName = user
	config.Impersonate.Groups = []string{"system:authenticated"}
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		for _, r := range rules {
			awaitAllowed(t, config, r, namespace)
		}
	}
	return config
}

// awaitAllowed waits until the API server's authorizer applies a rule, because it lags behind.
func awaitAllowed(t *testing.T, config *rest.Config, rule [3]string, namespace string) {
	t.Helper()
	client, err := authorization.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ask := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule[0], Group: rule[1], Resource: rule[2]},
	}}
	for deadline := time.Now().Add(fixtures.Patience); ; time.Sleep(20 * time.Millisecond) {
		got, err := client.SelfSubjectAccessReviews().Create(t.Context(), ask, metav1.CreateOptions{})
		if err == nil && got.Status.Allowed {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v is still not allowed: %v", rule, err)
		}
	}
}

func TestInside(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, namespace(space), configMap(space, "ours", "1")))
	commit := want(t, configMap("default", w.sync.Namespace, "1"))

	p := planned(t, c, commit)
	if p.Count(plan.Prune) != 2 {
		t.Errorf("A namespace with nothing but ours in it may go, got %v", actions(p))
	}
	for _, o := range []*unstructured.Unstructured{
		configMap(space, "theirs", "1"), configMap(space, "kube-root-ca.crt", "1"),
		thing("v1", "ServiceAccount", space, "default", nil),
	} {
		gvr := configMaps
		if o.GetKind() == "ServiceAccount" {
			gvr.Resource = "serviceaccounts"
		}
		if _, err := w.at(gvr, space).Create(t.Context(), o, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	q := question.Inside{Of: manifest.ID{Kind: "Namespace", Name: space}}
	got, err := c.Answer(t.Context(), []question.Any{q})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(question.Counted{Count: 1, Example: "ConfigMap " + space + "/theirs", These: []manifest.ID{{Kind: "ConfigMap", Namespace: space, Name: "theirs"}}}, got[q]); diff != "" {
		t.Errorf("Foreign objects in a namespace are counted; Kubernetes' own are not.\nAnswer (-want +got):\n%s", diff)
	}
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range done {
		if o.ID.Kind == "Namespace" && o.Err == nil {
			t.Error("A foreign object was added after the plan was made: want the namespace kept")
		}
	}

	q.Of.Name = w.sync.Namespace
	if got, err = c.Answer(t.Context(), []question.Any{q}); err != nil || counted(got, q) != 2 {
		t.Errorf("Our inventory and lease must not go with their namespace: want 2 inside, got %+v, %v", got[q], err)
	}
}

// If several kinds in a namespace may not be listed, the report names the alphabetically first, not the first that was refused,
// which would vary between passes.
func TestInsideForbidden(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space)))
	refused := make(chan struct{})
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		resource, inside := strings.CutPrefix(req.URL.Path, "/api/v1/namespaces/"+space+"/")
		switch {
		case inside && resource == "serviceaccounts":
			defer close(refused)
		case inside && resource == "configmaps":
			select {
			case <-refused:
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		default:
			return next.RoundTrip(req)
		}
		answer := answer(req, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no `+resource+`"}`)
		answer.StatusCode = http.StatusForbidden
		answer.Header.Set("Content-Type", "application/json")
		return answer, nil
	})
	q := question.Inside{Of: manifest.ID{Kind: "Namespace", Name: space}}
	c := clusterOf(t, config, w, cluster.Options{})
	planned(t, c, want(t, namespace(space))) // this pass discovers the kinds
	got, err := c.Answer(t.Context(), []question.Any{q})
	if err != nil || !strings.Contains(fmt.Sprint(got[q]), "no configmaps") {
		t.Errorf("want an answer that names ConfigMaps, got %+v, %v", got[q], err)
	}
}

// A kind that was removed after discovery has no objects, so it does not hold the prune of a namespace. A kind that discovery still
// lists may have some.
func TestInsideWithoutKind(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, namespace(space), w.crd("Ghost", "Namespaced")))
	planned(t, c, want(t, namespace(space))) // this pass discovers the kind
	if err := w.at(crds, "").Delete(t.Context(), "ghosts."+w.group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		_, err := w.at(w.resource("Ghost"), space).List(t.Context(), metav1.ListOptions{})
		return apierrors.IsNotFound(err)
	})
	q := question.Inside{Of: manifest.ID{Kind: "Namespace", Name: space}}
	got, err := c.Answer(t.Context(), []question.Any{q})
	if err != nil || counted(got, q) != 0 {
		t.Errorf("want nothing inside, got %+v, %v", got[q], err)
	}

	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/namespaces/"+space+"/configmaps") {
			answer := answer(req, "404 page not found")
			answer.StatusCode = http.StatusNotFound
			answer.Header.Set("Content-Type", "text/plain")
			return answer, nil
		}
		return next.RoundTrip(req)
	})
	got, err = clusterOf(t, config, w, cluster.Options{}).Answer(t.Context(), []question.Any{q})
	if err != nil || why(got[q]).None() {
		t.Errorf("A proxy may answer that: want an unknown answer, got %+v, %v", got[q], err)
	}
}
