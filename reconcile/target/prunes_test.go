package target

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"headgate.dev/headgate/fixtures"
)

// If a commit renames an object, the old one is pruned only once the new one exists: prunes form a separate round, planned after
// the other writes. If the API server refuses the new object, the old one stays.
func TestPrunesComeLast(t *testing.T) {
	const space = "prunes"
	var refuses atomic.Bool
	var writes []string
	config := fixtures.Intercept(fixtures.Config(t), func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		name := path.Base(req.URL.Path)
		if req.Method == http.MethodGet || !strings.HasPrefix(name, "settings-") {
			return next.RoundTrip(req)
		}
		if refuses.Load() && name == "settings-new" {
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not allowed here","code":403}`
			return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body)), Request: req}, nil
		}
		if !req.URL.Query().Has("dryRun") {
			writes = append(writes, req.Method+" "+name)
		}
		return next.RoundTrip(req)
	})
	live, err := corev1.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	settings := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings-%s, namespace: %s}\n", name, space)
	}
	repository := newRepo(t)
	repository.push(t, "settings.yaml", settings("old"))
	s := decode(t, fmt.Sprintf("  source: {repo: %q}\n  crdOwner: Headgate\n", repository.dir))
	s.Namespace, s.Name = space, space
	target, err := New(s, Surroundings{Cluster: config, Cache: t.TempDir(), Secret: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Once(t.Context()); err != nil {
		t.Fatal(err)
	}

	refuses.Store(true)
	repository.push(t, "settings.yaml", settings("new"))
	r, err := target.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.ConfigMaps(space).Get(t.Context(), "settings-old", metav1.GetOptions{}); err != nil || r.Summary.Failed != 1 || r.Summary.Held != 1 {
		t.Errorf("Nothing replaces it yet, so it stays: %v, summary %+v", err, r.Summary)
	}
	refuses.Store(false)
	writes = nil
	if _, err = target.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := live.ConfigMaps(space).Get(t.Context(), "settings-old", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("It is replaced, so it goes: %v", err)
	}
	if diff := cmp.Diff([]string{"PATCH settings-new", "DELETE settings-old"}, slices.Compact(writes)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
